# ruff: noqa: E501 - one row per server reads best as a table
"""Dialects of OpenAI-compatible servers: which requests each rejects, and the format of its replies.

A dialect consists of refusals (the first that applies is sent) and of a function that turns valid JSON text into the
body of a 200.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from tests.standin.call import Call
from tests.standin.faults import Fault

Refusal: TypeAlias = Callable[[Call], Fault | None]
Shape: TypeAlias = Callable[[str, Call], Any]
"""Function that returns the message of a choice."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Behaviour of one server. ``honours``: the request formats whose schema it enforces; in all others its models
    know the schema only from the prompt. ``streams``: it replies with server-sent events.
    """

    name: str
    about: str
    refusals: tuple[Refusal, ...] = ()
    shape: Shape = lambda good, call: {"content": good}
    honours: frozenset[str] = frozenset({"json_schema", "tool"})
    streams: bool = False
    body: Callable[[dict[str, Any]], Any] = lambda body: body

    def refusal(self, call: Call) -> Fault | None:
        return next((fault for refuses in self.refusals if (fault := refuses(call)) is not None), None)


def _form(*forms: str, status: int = 400, message: str, code: str | None = None, raw: Any = None) -> Refusal:
    """Reject requests whose schema comes in one of these formats."""
    body = None if raw is None else json.dumps(raw)
    return lambda call: (
        Fault(status=status, message=message, code=code, error_body=body) if call.form in forms else None
    )


def _param(
    *names: str, status: int = 400, message: str = "Unsupported parameter: '{}'", param: bool = False
) -> Refusal:
    """Reject requests with one of these parameters."""

    def refuses(call: Call) -> Fault | None:
        named = next((name for name in names if name in call.params), None)
        said = None if named is None else message.format(named)
        return None if said is None else Fault(status=status, message=said, param=named if param else None)

    return refuses


def _images(message: str, status: int = 400) -> Refusal:
    return lambda call: Fault(status=status, message=message) if call.images else None


def _roles(message: str, status: int = 400) -> Refusal:
    def refuses(call: Call) -> Fault | None:
        roles = [each["role"] for each in call.messages]
        return Fault(status=status, message=message) if "system" in roles else None

    return refuses


def _alternating(call: Call) -> Fault | None:
    roles = [message["role"] for message in call.messages]
    if any(left == right for left, right in pairwise(roles)):
        return Fault(status=400, message="Conversation roles must alternate user/assistant/user/assistant/...")
    return None


def _parts(call: Call) -> Fault | None:
    if any(not isinstance(message["content"], str) for message in call.messages):
        detail = [
            {"type": "string_type", "loc": ["body", "messages", 1, "content"], "msg": "Input should be a valid string"}
        ]
        return Fault(status=422, error_body=json.dumps({"detail": detail}))
    return None


def _without_json_word(call: Call) -> Fault | None:
    if call.form == "json_object" and "json" not in call.text.lower():
        return Fault(
            status=400, message="'messages' must contain the word 'json' in some form, to use 'response_format'"
        )
    return None


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}],
    }


def _wrong(good: str) -> str:
    """Return a draft with the opposite verdict."""
    return good.replace("true", "maybe").replace("false", "true").replace("maybe", "false")


def _openrouter(call: Call) -> Fault | None:
    if not any(message["role"] == "system" for message in call.messages):
        return None
    raw = json.dumps({"error": {"message": "Template error: System role not supported", "type": "BadRequestError"}})
    metadata = {"raw": raw, "provider_name": "Somewhere"}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return Fault(status=400, error_body=json.dumps({"error": error, "user_id": "u"}))


def _no_images_flat(call: Call) -> Fault | None:
    said = "At most 0 image(s) may be provided in one prompt. None"
    body = {"object": "error", "message": said, "type": "BadRequestError", "param": None, "code": 400}
    return Fault(status=400, error_body=json.dumps(body)) if call.images else None


def _gemini(call: Call) -> Fault | None:
    if "additionalProperties" not in json.dumps(call.schema):
        return None
    said = (
        'Invalid JSON payload received. Unknown name "additionalProperties" at '
        "'generation_config.response_schema': Cannot find field."
    )
    error = {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}
    return Fault(status=400, error_body=json.dumps([error]))


def _without_max_tokens(call: Call) -> Fault | None:
    if {"max_tokens", "max_completion_tokens"} & call.params.keys():
        return None
    error = {"type": "invalid_request_error", "message": "max_tokens: Field required"}
    return Fault(status=400, error_body=json.dumps({"type": "error", "error": error}))


def _failed_generation(call: Call) -> Fault | None:
    if call.form not in ("json_schema", "json_object"):
        return None
    said = "Failed to validate JSON. Please adjust your prompt. See 'failed_generation' for more details."
    error = {"message": said, "type": "invalid_request_error", "code": "json_validate_failed", "failed_generation": ""}
    return Fault(status=400, error_body=json.dumps({"error": error}))


def _successive(call: Call) -> Fault | None:
    roles = [message["role"] for message in call.messages]
    if not any(left == right for left, right in pairwise(roles)):
        return None
    said = (
        "deepseek-reasoner does not support successive user or assistant messages (messages[1] and messages[2] in your "
        "input). You should interleave the user/assistant messages in the message sequence."
    )
    return Fault(status=400, message=said, code="invalid_request_error")


def _jinja(call: Call) -> Fault | None:
    if not any(message["role"] == "system" for message in call.messages):
        return None
    said = (
        "\n------------\nWhile executing CallExpression at line 1, column 67 in source:\n{{ bos_token }}{% if tools %}"
        "{{ tools | tojson }}{% endif %}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not "
        "supported') }}{% endif %}{% for item in message['content'] %}{% if item['type'] == 'image' %}...\n^\n"
        "Error: Jinja Exception: System role not supported"
    )
    error = {"error": {"code": 500, "message": said, "type": "server_error"}}
    return Fault(status=500, error_body=json.dumps(error))


def _request_entity(call: Call) -> Fault | None:
    page = "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n</html>"
    return Fault(status=413, error_body=page) if call.images else None


_PYDANTIC = {
    "detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]
}
_all = [
    Dialect(name="openai", about="OpenAI: strict schemas"),
    Dialect(name="vllm", about="vLLM with a schema, chat template without system role",
            refusals=(_roles("System role not supported"),)),
    Dialect(name="vllm-gemma", about="vLLM with a Gemma template",
            refusals=(_roles("Conversation roles must alternate user/assistant/user/assistant/..."), _alternating)),
    Dialect(name="vllm-text-only", about="vLLM with a model without pictures",
            refusals=(_images("my-model is not a multimodal model None"),)),
    Dialect(name="vllm-r1", about="vLLM without a reasoning parser: thinking, then a closing tag only", honours=frozenset(),
            shape=lambda good, call: {"content": f'I must write {{"result": true/false}}. Perhaps {_wrong(good)}\n</think>\n\n{good}'}),
    Dialect(name="vllm-reasoning", about="vLLM that puts the whole reply into reasoning_content",
            shape=lambda good, call: {"content": None, "reasoning_content": f"Let me see {{a}}.\n{good}"}),
    Dialect(name="llama.cpp", about="llama.cpp server without mmproj",
            refusals=(_images("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", 500),
                      _form("tool", status=500, message="tools param requires --jinja flag"))),
    Dialect(name="llama.cpp-grammar", about="llama.cpp whose grammar parser refuses the schema",
            refusals=(_form("json_schema", message="failed to parse grammar"),)),
    Dialect(name="ollama", about="Ollama: pictures refused by a text model",
            refusals=(_images("this model is missing data required for image input", 500),)),
    Dialect(name="ollama-old", about="older Ollama: ignores json_schema", honours=frozenset(),
            shape=lambda good, call: {"content": good}),
    Dialect(name="lm-studio", about="LM Studio: json_schema or text",
            refusals=(_form("json_object", message="'response_format.type' must be 'json_schema' or 'text'"),
                      _images("Model does not support images. Please use a model that does."))),
    Dialect(name="litellm", about="LiteLLM before a provider without parameters",
            refusals=(_param("temperature", message="litellm.UnsupportedParamsError: openai does not support parameters: ['{}'], for model=o9"),)),
    Dialect(name="litellm-no-format", about="LiteLLM: response_format unsupported",
            refusals=(_form("json_schema", "json_object", message="litellm.UnsupportedParamsError: x does not support parameters: ['response_format']"),)),
    Dialect(name="tgi", about="TGI: other response_format types, 422",
            refusals=(_form("json_schema", status=422, message="Failed to deserialize the JSON body into the target type: response_format: unknown variant `json_schema`, expected `json_object` or `regex`"),
                      _form("json_object", status=422, message="Failed to deserialize the JSON body: response_format: missing field `value`"))),
    Dialect(name="sglang", about="SGLang: schema refused by the grammar backend",
            refusals=(_form("json_schema", status=400, message="Failed to compile json schema: xgrammar"),)),
    Dialect(name="openrouter", about="OpenRouter: no endpoint with pictures",
            refusals=(_images("No endpoints found that support image input", 404),)),
    Dialect(name="openrouter-200", about="OpenRouter: an error with status 200",
            refusals=(lambda call: Fault(raw_body=json.dumps({"error": {"code": 400, "message": "response_format json_schema is not supported"}}))
                      if call.form == "json_schema" else None,)),
    Dialect(name="groq", about="Groq: json_schema only for some models",
            refusals=(_form("json_schema", message="This model does not support response format `json_schema`."), _without_json_word)),
    Dialect(name="together", about="Together: fences around the reply", honours=frozenset(),
            shape=lambda good, call: {"content": f"```json\n{good}\n```"}),
    Dialect(name="fireworks", about="Fireworks: strict refused",
            refusals=(lambda call: Fault(status=400, message="Extra inputs are not permitted, field: 'response_format.json_schema.strict'")
                      if call.is_strict else None,)),
    Dialect(name="mistral", about="Mistral: 422 for unknown parameters, content in parts",
            refusals=(_param("seed", status=422, message="Extra inputs are not permitted: {}"),),
            shape=lambda good, call: {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}, {"type": "text", "text": good}]}),
    Dialect(name="deepseek", about="DeepSeek: json_object only, text only", honours=frozenset({"tool"}),
            refusals=(_images("Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`"),
                      _form("json_schema", message="This response_format type is unavailable now"), _without_json_word),
            shape=lambda good, call: {"content": good, "reasoning_content": f"Draft: {_wrong(good)}"}),
    Dialect(name="qwen-think", about="Qwen: think blocks with drafts", honours=frozenset(),
            shape=lambda good, call: {"content": f"<think>\nMaybe {_wrong(good)}\n</think>\n\n{good}"}),
    Dialect(name="qwen-unclosed", about="Qwen: a think block that is never closed", honours=frozenset(),
            shape=lambda good, call: {"content": f"<think>\nLet me look at the page.\n{good}"}),
    Dialect(name="azure", about="Azure with an o-series deployment",
            refusals=(_param("temperature", message="Unsupported value: '{}' does not support 0.0 with this model.", param=True),
                      _param("max_tokens", message="Unsupported parameter: '{}' is not supported with this model. Use 'max_completion_tokens' instead.", param=True))),
    Dialect(name="o1-mini", about="OpenAI o1-mini: no system role, no schema",
            refusals=(_roles("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
                      _form("json_schema", "json_object", message="Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."))),
    Dialect(name="gateway-sse", about="a gateway that always streams", streams=True),
    Dialect(name="gateway-prompt-only", about="a gateway that knows messages only: 422 for every other field",
            refusals=(lambda call: Fault(status=422, error_body=json.dumps(_PYDANTIC)) if call.form in ("json_schema", "json_object") else None,
                      _form("tool", status=422, message="extra fields not permitted: tools, tool_choice"),
                      _param("temperature", status=422, message="extra fields not permitted: {}"))),
    Dialect(name="gateway-vague", about="a gateway that says only: Bad Request", honours=frozenset(),
            refusals=(_form("json_schema", "json_object", "tool", message="Bad Request"),)),
    Dialect(name="gateway-500", about="a gateway that fails on response_format and names no cause",
            refusals=(_form("json_schema", "json_object", status=500, message="Internal Server Error"),)),
    Dialect(name="gateway-500-named", about="a gateway that fails on response_format and says so",
            refusals=(_form("json_schema", "json_object", status=500, message="response_format is not implemented"),)),
    Dialect(name="string-content", about="a server that takes strings only", refusals=(_parts,)),
    Dialect(name="ignores-everything", about="prose around the reply, response_format ignored", honours=frozenset(),
            shape=lambda good, call: {"content": f"Sure! Here is the result {{as asked}}:\n\n{good}\n\nAnything else?"}),
    Dialect(name="tools-only", about="prose unless a tool is called", honours=frozenset({"tool"}),
            shape=lambda good, call: _call(call.schema_name, good) if call.form == "tool" else {"content": "The claim seems to hold."}),
    Dialect(name="tool-objects", about="tool arguments as an object",
            refusals=(_form("json_schema", "json_object", message="response_format is not supported"),),
            shape=lambda good, call: _call(call.schema_name, json.loads(good)) if call.form == "tool" else {"content": good}),
    Dialect(name="function-call", about="a legacy function_call",
            shape=lambda good, call: {"content": None, "function_call": {"name": "reply", "arguments": good}}),
    Dialect(name="python", about="a Python dict, booleans as strings", honours=frozenset(),
            shape=lambda good, call: {"content": repr(_stringly(json.loads(good)))}),
    Dialect(name="wrapped", about="the object wrapped in one key, with a BOM",
            shape=lambda good, call: {"content": "\ufeff" + json.dumps({"answer": json.loads(good)})}),
    Dialect(name="double-encoded", about="JSON in a JSON string, in a list",
            shape=lambda good, call: {"content": json.dumps(json.dumps([json.loads(good)]))}),
    Dialect(name="openrouter-wrapped", about="OpenRouter: the provider's words in metadata.raw only", refusals=(_openrouter,)),
    Dialect(name="vllm-no-images", about="vLLM with images limited to 0: flat error body, integer code", refusals=(_no_images_flat,)),
    Dialect(name="gemini", about="Gemini's OpenAI endpoint: errors in a list, no additionalProperties", refusals=(_gemini,)),
    Dialect(name="claude-gateway", about="a gateway to Claude: max_tokens required, response_format ignored", honours=frozenset({"tool"}),
            refusals=(_without_max_tokens,),
            shape=lambda good, call: _call(call.schema_name, good) if call.form == "tool" else {"content": f"Here it is:\n\n```json\n{good}\n```"}),
    Dialect(name="groq-validate", about="Groq: 400 json_validate_failed for what the model wrote", honours=frozenset({"tool"}),
            refusals=(_failed_generation,)),
    Dialect(name="deepseek-reasoner", about="DeepSeek reasoner: empty replies in JSON mode, no successive messages", honours=frozenset(),
            refusals=(_images("Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`"),
                      _form("json_schema", message="This response_format type is unavailable now"), _without_json_word, _successive),
            shape=lambda good, call: {"content": "" if call.form == "json_object" else good, "reasoning_content": ""}),
    Dialect(name="stream-only", about="DashScope: a model that streams only", streams=True,
            refusals=(lambda call: None if call.params.get("stream") else Fault(
                status=400, message="This model only support stream mode, please enable the stream parameter to access the model."),)),
    Dialect(name="gpt-oss-leak", about="vLLM: gpt-oss with its channels as plain words", honours=frozenset(),
            shape=lambda good, call: {"content": f"analysisWe need JSON. Perhaps {_wrong(good)} No.assistantfinal{good}"}),
    Dialect(name="llama.cpp-jinja", about="llama.cpp: a 500 that quotes the chat template", refusals=(_jinja,)),
    Dialect(name="nginx-413", about="nginx before a server: pictures exceed its body limit", refusals=(_request_entity,)),
    Dialect(name="databricks", about="Databricks: response_format is an unknown field", honours=frozenset({"tool"}),
            refusals=(_form("json_schema", "json_object", message="", raw={"error_code": "BAD_REQUEST", "message": 'Bad request: json: unknown field "response_format"\n'}),)),
    Dialect(name="watsonx", about="watsonx: errors in a list, json_object only", honours=frozenset(),
            refusals=(_form("json_schema", message="", raw={"errors": [{"code": "invalid_request_entity", "message": "Json document validation error: response_format.type must be one of [json_object text]"}], "trace": "x", "status_code": 400}),)),
    Dialect(name="perplexity", about="Perplexity: strict refused by path",
            refusals=(lambda call: Fault(status=400, message="At body -> response_format -> ResponseFormatJSONSchema -> json_schema -> strict: Extra inputs are not permitted")
                      if call.is_strict else None, _alternating)),
    Dialect(name="glm-box", about="GLM-V: thinking with a draft, then a box", honours=frozenset(),
            shape=lambda good, call: {"content": f"<think>Perhaps {_wrong(good)}</think>\n<|begin_of_box|>{good}<|end_of_box|>"}),
    Dialect(name="vertex-vague", about="Vertex: an invalid argument, whatever it was", honours=frozenset({"tool"}),
            refusals=(_form("json_schema", "json_object", message="", raw=[{"error": {"code": 400, "message": "Request contains an invalid argument.", "status": "INVALID_ARGUMENT"}}]),)),
    Dialect(name="hf-router", about="Hugging Face router: the model supports no images",
            refusals=(lambda call: Fault(status=400, message="The requested model 'x/llama-9' does not support image inputs", code="model_not_supported", param="messages")
                      if call.images else None,)),
]  # fmt: skip


def _stringly(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: str(each) if isinstance(each, bool) else each for key, each in value.items()}


DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _all}


def events(body: Mapping[str, Any]) -> str:
    """Return a completion as server-sent events."""
    [choice] = body["choices"]
    base = {key: value for key, value in body.items() if key not in ("choices", "usage")}
    text = choice["message"].get("content") or ""
    deltas: list[Any] = [{"role": "assistant"}, *({"content": text[at : at + 7]} for at in range(0, len(text), 7))]
    chunks = [{**base, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": body["usage"]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
