"""Extractor for task scripts: values from the answer or a page."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeVar

from pydantic import BaseModel, PydanticUserError

from cache.capture import Evidence
from cache.errors import CacheError, NoEvidence
from judges.errors import ExtractionFailed, JudgeError
from judges.extractor import ExtractionQuestion
from judges.llm.replies import empty_extraction
from mind2web2.config import NO_INSTRUCTION
from mind2web2.evaluator_base import BaseEvaluator
from mind2web2.verify_options import instruction_of, page_addresses

__all__ = ["Extractor", "empty_extraction"]

S = TypeVar("S", bound=BaseModel)

extraction_name: ContextVar[str | None] = ContextVar("mind2web2_extraction_name", default=None)
"""Name that the script gave the extraction, for records."""


class Extractor(BaseEvaluator):
    """Fills a script's pydantic class.

    If that fails, the script gets an empty object and the decisions record the failure.
    """

    async def simple_extract(
        self,
        extraction_prompt: str,
        template_class: type[S],
        additional_instruction: str | None = NO_INSTRUCTION,
    ) -> S:
        """Extract from the answer.

        Raises:
            JudgeError: the answer can have no result.
        """
        return await self._read(extraction_prompt, template_class, additional_instruction)

    async def extract_from_url(
        self,
        extraction_prompt: str,
        url: str,
        template_class: type[S],
        *,
        additional_instruction: str | None = NO_INSTRUCTION,
        use_screenshot: bool = True,
    ) -> S:
        """Extract from a page: from its text and, by default, its screenshots.

        Raises:
            JudgeError: the answer can have no result.
        """
        if not page_addresses([url]):
            # The answer cites no page here, so there is nothing to extract. This is not a fault.
            self.logger.info("extraction without a page: %r", url)
            return _empty(template_class)
        try:
            with self.session.recorded_failure("an extraction"):
                page = await self.session.pages.evidence(url)
        except CacheError as error:
            self._without_page(error)
            return _empty(template_class)
        except JudgeError as error:  # the script may ignore it
            self._failed(f"extraction failed: {error}")
            raise
        return await self._read(
            extraction_prompt, template_class, additional_instruction, page=page, use_screenshot=use_screenshot
        )

    async def _read(
        self,
        prompt: str,
        template_class: type[S],
        instruction: str | None,
        *,
        page: Evidence | None = None,
        use_screenshot: bool = True,
    ) -> S:
        decisions = self.session.decisions
        if not issubclass(template_class, BaseModel):
            self._failed(f"extraction failed: {template_class.__name__} is not a pydantic 2 model")
            return template_class()
        name = extraction_name.get() or template_class.__name__
        extractor = self.session.extractor(self.MODEL_NAME, name)
        try:
            with self.session.recorded_failure("an extraction"):
                extracted = await extractor.extract(
                    template_class,
                    ExtractionQuestion(
                        prompt=prompt,
                        task=self.task_description,
                        answer=self.answer,
                        evidence=page,
                        instruction=instruction_of(instruction),
                        use_screenshot=use_screenshot,
                    ),
                )
        except ExtractionFailed as error:
            decisions.add_usage(error.usage, None)
            self.session.record_rejected_extraction(name, None if page is None else page.capture.url, error)
            self._failed(str(error))
            return empty_extraction(template_class)
        except JudgeError as error:  # the script may ignore it
            self._failed(f"extraction failed: {error}")
            raise
        except PydanticUserError as error:
            self._failed(f"extraction failed: {template_class.__name__} has no JSON schema: {error.message}")
            return empty_extraction(template_class)
        decisions.add_usage(extracted.usage, extracted.prompt)
        return extracted.value

    def _without_page(self, error: CacheError) -> None:
        if isinstance(error, NoEvidence) and error.gone:
            # The page is known not to exist, so its content is missing from the answer.
            self.logger.warning("extraction from a page that is gone: %s", error)
        else:
            self._failed(f"extraction failed: {error}")

    def _failed(self, explanation: str) -> None:
        self.logger.error(explanation)
        self.session.decisions.record_failed_extraction(explanation)


def _empty(template_class: type[S]) -> S:
    """Return an empty extraction. A class of pydantic 1 is created with its defaults."""
    return empty_extraction(template_class) if issubclass(template_class, BaseModel) else template_class()


def as_recorded(value: Any) -> Any:
    """Return a snapshot of a value; models are converted to dicts."""
    if isinstance(value, BaseModel):
        return value.model_dump(warnings=False)
    return value.dict() if hasattr(value, "dict") else value  # a class of pydantic 1
