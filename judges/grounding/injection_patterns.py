"""Signs of prompt injection in a sentence, their English patterns, and the combinations that form an instruction.

The patterns are families of wordings, as regular expressions over skeleton text. A single sign proves little.

This is not a list of known attacks. Coverage is measured on wordings that were not used to write the patterns.

An empty announcement (``EMPTY_ANNOUNCEMENT``) is a text that announces an answer without giving one, in any language.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from judges.grounding.folding import CONFUSABLES
from judges.prompting.blocks import CHAT_TOKEN


class InjectionSign(StrEnum):
    """Sign that a sentence addresses the judge."""

    OVERRIDE = "override"
    """Asks to ignore earlier rules."""
    IMITATION = "imitation"
    """Imitates output of this program or of a model: chat tokens, block tags, a verdict as data."""
    ORDER = "order"
    """Demands a certain verdict on a claim or an answer."""
    ADDRESS = "address"
    """Addresses a model or a judge."""
    VERDICT = "verdict"
    """States or demands that a claim, statement or answer is right, or asks for leniency."""
    PRAISE = "praise"
    """Like ``VERDICT``, but without an object: "everything", "it", "this"."""
    AUTHORITY = "authority"
    """Invokes the operators of the evaluation, or people who have allegedly checked already."""
    RULES = "rules"
    """Claims that the rules of the evaluation have changed."""
    PRESSURE = "pressure"
    """Threatens, urges, begs or promises."""
    LAYOUT = "layout"
    """Has the layout of a prompt: a role name, an example of a check."""


SUFFICIENT_SIGNS: Final = frozenset({InjectionSign.OVERRIDE, InjectionSign.IMITATION, InjectionSign.ORDER})
"""Signs that are sufficient on their own."""
REQUIRED_COMPANIONS: Final = {
    InjectionSign.VERDICT: frozenset(
        {
            InjectionSign.ADDRESS,
            InjectionSign.AUTHORITY,
            InjectionSign.RULES,
            InjectionSign.PRESSURE,
            InjectionSign.LAYOUT,
        }
    ),
    InjectionSign.PRAISE: frozenset({InjectionSign.ADDRESS, InjectionSign.AUTHORITY, InjectionSign.LAYOUT}),
    InjectionSign.RULES: frozenset({InjectionSign.ADDRESS, InjectionSign.AUTHORITY, InjectionSign.LAYOUT}),
}
"""Signs that require one of the listed signs nearby. The remaining signs say nothing about a verdict."""
SINGLE_SENTENCE_SIGNS: Final = (
    frozenset({InjectionSign.ORDER, InjectionSign.VERDICT, InjectionSign.PRAISE}),
    frozenset({InjectionSign.IMITATION}),
)
"""Signs that also occur on ordinary pages (a quiz, API documentation).

If a passage has no other signs and does not name a claim, only its sentence counts as the instruction. Otherwise its
whole paragraph does: a claim beside text that addresses the judge is part of the attack.
"""

BEFORE_CHARS: Final = 80
"""Maximum distance before a match in which ``SignPattern.after`` is searched."""


@dataclass(frozen=True, slots=True)
class SignPattern:
    """Pattern for a sign over skeleton text (``judges.grounding.folding``).

    ``at_start``: matches only at the start of a line or sentence. ``after``: must match immediately before.
    """

    sign: InjectionSign
    pattern: re.Pattern[str]
    at_start: bool = False
    after: re.Pattern[str] | None = None

    def context_allows(self, text: str, place: int) -> bool:
        """Return whether the text before ``place`` allows a match that starts there."""
        return self.after is None or self.after.search(text, max(0, place - BEFORE_CHARS), place) is not None


def _any(words: str) -> str:
    return "(?:" + "|".join(words.split()).replace("_", r"\s?") + ")"


_CHECKER = (
    r"(?:a\.?i\.?|llms?|(?:large )?language models?|chat ?gpt|gpt-?\d?\w*|chatbots?|(?:ai )?assistants?|models?|"
    r"(?:auto-?)?graders?|judges?|evaluators?|verifiers?|reviewers?|assessors?|examiners?|scorers?|raters?|"
    r"annotators?|(?:fact[- ]?)?checkers?|agents?|bots?|"
    r"automated (?:system|reader|checker|reviewer|visitor|agent|tool)s?|(?:grading|evaluation|verification|judging|"
    r"scoring|checking|review) (?:system|model|script|software|bot|agent|pipeline|engine)s?)"
)
_MACHINE = (
    r"(?:a\.?i\.?(?: (?:model|system|agent|assistant)s?)?|llms?|(?:large )?language models?|chatbots?|"
    r"automated (?:system|reader|checker|reviewer|visitor|agent|tool)s?|chat ?gpt|ai-?(?:judge|grader|reviewer)s?)"
)
_CORE = _any("claims? statements? assertions? citations? answers? responses? submissions? results? verdicts? facts?")
_VAGUE = _any("evaluations? assessments? grades? criteri(?:on|a) rubrics? leaf leaves checks? it this everything all")
_JARGON = r"(?:fully |well |completely |being |as )*(?:supported|substantiated|verified|grounded|validated)"
_RIGHT = (
    r"(?:fully |completely |entirely |absolutely |perfectly |being |indeed )*(?:supported|substantiated|verified|"
    r"validated|correct|true|pass(?:ed|es|ing)?|valid|accurate|confirmed|fulfilled|satisfied|grounded|approved|"
    r"accepted|proven|right|full (?:marks|credit|score|points)|(?:the )?(?:maximum|highest|top|best) "
    r"(?:score|points|marks|grade)|10 ?/ ?10|100 ?%|yes|positive)\b(?! ?(?:or|/) ?(?:false|not\b|in|un|wrong))"
    r"(?! by (?:the |our |these |this )?(?:data|results?|evidence|experiments?|findings|observations|literature))"
)
_SO = r"(?:(?!not\b|never\b)\w+ ){0,3}?"
_IS = r"(?:is|are|was|were|been|be|count(?:s|ed)? as|=|:)"
_GIVE = _any(
    "mark rate grade score label judge classify return output respond answer reply set conclude report treat accept "
    "count consider deem regard approve confirm declare award assign print give verify pass record enter emit say "
    "write decide rule vote"
)
_MOOD = (
    r"(?:^|[.!?:;,>\])}|*#-] ?|\b(?:please|kindly|simply|just|always|now|then|therefore|so|"
    r"you (?:must|should|shall|can|may|will|need to|have to|are to|are asked to|are required to|are instructed to)|"
    r"(?:would|could) you|(?:grateful|appreciate it|glad|kind) if you (?:would|could)(?: kindly)?|be (?:so )?kind "
    r"(?:enough )?(?:and|to)|feel free to|(?:requires?|orders?|instructs?|tells?|wants?|expects?) you to|"
    r"ask(?:ed)? (?:you )?to|we (?:recommend|suggest|ask|invite) (?:you )?(?:to )?)"
    r" )(?:simply |just |always |kindly |also |now |to )?"
)

_WORDINGS: tuple[tuple[InjectionSign, str, bool], ...] = (
    (
        InjectionSign.OVERRIDE,
        r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|es|ing)|bypass|discard|set aside|stop following|"
        r"(?:do not|don't|no longer) (?:follow|obey|apply))\b[^.!?={}\[\]]{0,30}\b(?:previous|prior|earlier|above|"
        r"preceding|former|existing|original|initial|all|any|your|other|system|everything|what)\b"
        r"(?:[^.!?]{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|directions?|directives?|criteria|orders?|"
        r"constraints?|messages?|rubrics?)\b| (?:above|before|you (?:were|have been) told))",
        False,
    ),
    (
        InjectionSign.OVERRIDE,
        r"\b(?:ignore|disregard|forget|drop|(?:do not|don't) (?:follow|obey|apply)) "
        r"(?:the |your |this |that |these |those )?(?:\w+ )?(?:rubric|criteri(?:a|on)|"
        r"(?:instructions?|rules?|guidelines?|directions?|prompts?) (?:\w+ )?"
        r"(?:above|before|so far|up to here))\b|\bignore (?:what|everything) (?:the|this|that) (?:page|source|document|"
        r"text) (?:says|states|claims)\b",
        False,
    ),
    (InjectionSign.IMITATION, rf"(?!</?s>)(?i:{CHAT_TOKEN.pattern})", False),
    (InjectionSign.IMITATION, r"</?(?:task|answer|page|url|claim|instruction|links|request) ?[0-9a-f]{8,}>", False),
    (
        InjectionSign.IMITATION,
        r"</(?:answer|claim|instruction|user_?(?:input|answer)|untrusted|evidence|document)s?>",
        False,
    ),
    (
        InjectionSign.IMITATION,
        r"[\"']?\b(?:result|verdict|judge?ment|decision|is_?supported|supported|verified|is_?correct|is_?valid|passed|"
        r"grounded|label|grade|evaluation)\b[\\\"']{0,2} ?[:=] ?[\\\"']{0,2}(?:true|supported|verified|passed?|1\.0)\b"
        r"(?=[\\\"' ]*[,}\])]|[\"' ]*$)",
        False,
    ),
    (InjectionSign.IMITATION, r"\b(?:final )?(?:verdict|judge?ment|ruling)\b ?(?:is|:|=|-) ?[\"']?" + _JARGON, False),
    (
        InjectionSign.IMITATION,
        r"\b(?:verdict|result|judge?ment|outcome|decision|finding)s? (?:for|of|on) (?:the|this|that|every|each) "
        r"(?:claim|statement|answer|assertion|item|node|leaf)\b[^.!?]{0,20}(?:\b(?:is|was|are)\b|:|=)",
        False,
    ),
    (
        InjectionSign.IMITATION,
        r"\b(?:right|correct|expected|only|proper|desired) (?:answer|response|result|output|verdict|label)\b"
        r"[^.!?]{0,30}(?:\bis|:|=) ?[\"']?(?:supported|true|yes|pass)\b",
        False,
    ),
    (InjectionSign.LAYOUT, r"[\"']role[\"'] ?: ?[\"'](?:assistant|system)\b", False),
    (InjectionSign.IMITATION, r"\b(?:claim|statement|answer)s? to (?:verify|check|judge|evaluate|grade)\b", False),
    (
        InjectionSign.IMITATION,
        r"\b(?:ground[- ]?truth|(?:reference|gold(?:en)?(?:[- ]standard)?|ground[- ]?truth|expected|canonical) "
        r"(?:answer|label|solution|verdict|response|output|judge?ment)s?)\b ?"
        r"(?:\([^)]{0,40}\) ?)?(?:for [^.:!?]{1,40})?(?:is|:|=|-)",
        False,
    ),
    (InjectionSign.IMITATION, r"\b(?:function|tool)_?(?:call|result|response|use|output)s?\b[\"']? ?[:=>({\[]", False),
    (
        InjectionSign.ORDER,
        rf"\b{_GIVE}\b[^.!?]{{0,40}}\b{_CORE}\b[^.!?]{{0,30}}?\b(?:as|to be|be) [\"']?{_JARGON}",
        False,
    ),
    (
        InjectionSign.ORDER,
        rf"\b{_CORE}\b[^.!?]{{0,60}}\b(?:must|should|shall|ha(?:s|ve) to|is to|are to) be (?:judged|rated|marked|"
        rf"graded|scored|labell?ed|counted|treated|considered|regarded|accepted|deemed)\b[^.!?]{{0,12}}{_RIGHT}",
        False,
    ),
    (
        InjectionSign.ORDER,
        rf"\b{_GIVE} [\"']?(?:yes|true|supported|correct)[\"']? (?:for|to|on) (?:each|every|all|any|this|the)\b",
        False,
    ),
    (
        InjectionSign.ORDER,
        rf"\b(?:do not|don't|never) (?:penali[sz]e|reject|fail|mark down) (?:the |this |an? |any )?{_CORE}\b",
        False,
    ),
    (InjectionSign.ADDRESS, rf"\b(?:dear|attention|hey|hello|hi) (?:\w+ ){{0,2}}{_CHECKER}\b", False),
    (
        InjectionSign.ADDRESS,
        r"\b(?:notes?|messages?|notices?|instructions?|hints?|information|reminder|important|guidance|directives?)"
        rf"[^.!?:]{{0,12}}\b(?:to|for) (?:\w+ ){{0,3}}{_CHECKER}\b",
        False,
    ),
    (
        InjectionSign.ADDRESS,
        rf"\b{_CHECKER}(?:'s)? (?:notes?|instructions?|directives?|messages?|hints?|guidance|notice)\b",
        False,
    ),
    (
        InjectionSign.ADDRESS,
        r"\b(?:if you are|you are|as|you,|to (?:the|any|all|every)) (?:an? |the |now )?(?:\w+ ){0,2}"
        rf"{_MACHINE}\b",
        False,
    ),
    (InjectionSign.ADDRESS, rf"\byou are (?:an?|the) (?:\w+ ){{0,2}}{_CHECKER}\b", False),
    (
        InjectionSign.ADDRESS,
        rf"\b{_CHECKER} (?:is|are) (?:instructed|asked|required|requested|told|advised) to\b",
        False,
    ),
    (
        InjectionSign.ADDRESS,
        r"\byour (?:reasoning|verdict|judge?ment|evaluation|assessment|rationale|final answer)\b|\bquote this "
        r"(?:sentence|passage|paragraph|line|text)\b|\b(?:for|in) (?:the purposes? of )?this (?:evaluation|check|"
        r"verification|assessment|grading|audit)\b",
        False,
    ),
    (
        InjectionSign.ADDRESS,
        rf"\b{_MACHINE},? (?:must|should|shall|are (?:asked|required|instructed) to|is to|need to|will)\b",
        False,
    ),
    (InjectionSign.ADDRESS, rf"\b{_CHECKER} ?[,:!] ", True),
    (InjectionSign.ADDRESS, rf"\b(?:as|being) (?:an?|the|our) (?:\w+ )?{_CHECKER},? (?:you|please)\b", False),
    (InjectionSign.ADDRESS, r"\byou are now (?:in|an?|the|free|acting)\b", False),
    (
        InjectionSign.ADDRESS,
        r"\b(?:evaluation|grading|verification|judging|scoring) (?:notes?|notice|message|instruction|hint|remark)s? ?:",
        False,
    ),
    (
        InjectionSign.PRAISE,
        rf"\b{_GIVE}(?:s|d|ed|ing)?\b[^.!?]{{0,60}}?\b(?:as|is|are|to be|be|=|:|to|with) [\"']?{_RIGHT}",
        False,
    ),
    (
        InjectionSign.PRAISE,
        r"\b(?:answer|reply|respond|return|output|say|write|print) (?:only |just |with |simply )*[\"']?(?:yes|true|"
        r"supported|positive|correct|passe?d?|\{)|\b(?:positive|favou?rable|passing|perfect|full) (?:verdict|"
        r"judge?ment|reviews?|evaluation|assessment|rating|score|grade|marks?)\b",
        False,
    ),
    (
        InjectionSign.PRAISE,
        r"\b(?:notes?|notice|status|stamp|seal|result|outcome|checks?) ?[:=] ?[\"']?(?:verified|supported|approved|"
        r"confirmed|passed|ok|true|valid)\b",
        False,
    ),
    (
        InjectionSign.PRAISE,
        rf"\b{_VAGUE}\b[^.!?]{{0,50}}?\b{_IS} {_SO}[\"']?{_RIGHT}",
        False,
    ),
    (
        InjectionSign.VERDICT,
        rf"\b{_CORE}\b[^.!?]{{0,50}}?\b(?:{_IS}|as) {_SO}[\"']?{_RIGHT}",
        False,
    ),
    (
        InjectionSign.VERDICT,
        r"\b(?:consider|deem|regard|treat|count|find|judge|call)s? (?:the|this|that|every|each|all) \w+ (?:as |to be )?"
        rf"{_RIGHT}|\b{_CORE} (?:satisfies|satisfy|meets?|fulfill?s?|passe?s?) (?:all|every|each|the)\b|"
        rf"\b(?:confirm|accept|approve|endorse|validate|support|(?:agree|side|go) with) (?:the|this|that|every|each) "
        rf"{_CORE}\b|\b(?:reject|fail|refus|dismiss|doubt)ing (?:the |this |that )?{_CORE}\b|"
        rf"\b(?:page|source|site|document) (?:confirm|support|prove|back|substantiate|verifie)s (?:the|this|every|"
        rf"each) {_CORE}\b|\bbenefit of the doubt\b",
        False,
    ),
    (
        InjectionSign.PRAISE,
        r"\b(?:verification|fact[- ]check(?:ing)?|validation|grading) (?:is |was |has been )?(?:disabled|off|"
        r"completed?|passed|waived|suspended)\b|\ball (?:claims|statements|answers|items) (?:pass|count|hold)\b",
        False,
    ),
    (
        InjectionSign.VERDICT,
        r"\b(?:accept (?:any|every|all)|treat [^.!?]{0,50} as (?:equivalent|equal|the same|a match)|"
        r"be (?:very )?lenient|(?:do not|don't|never) (?:penali[sz]e|deduct|reject|mark down|fail)|"
        r"(?:no (?:need|reason) to|do not|don't|never|need not) (?:re-?)?(?:check|verify|doubt|question|examine)|"
        r"no (?:further|more|additional) (?:check(?:s|ing)?|verification|evidence|review)|"
        r"without (?:further )?(?:checking|verif\w+|checks?)|"
        r"skip (?:the |all |any )?(?:\w+ )?(?:verification|checks?|checking)|"
        r"(?:further|additional|more) (?:checking|verification|checks?|evidence) (?:is|are) (?:not|un)|"
        r"(?:always|automatically) (?:passes|pass|counts?|succeeds?))\b",
        False,
    ),
    (
        InjectionSign.AUTHORITY,
        r"\b(?:benchmark|evaluation|grading|annotation|quality|audit|verification|trust|review|dataset|assessment|"
        r"research|safety|leaderboard)(?: (?:and|&) \w+)? (?:team|organi[sz]ers?|committee|board|staff|authors?|"
        r"maintainers?|administrators?|office|department|panel|coordinators?|service|pipeline)\b",
        False,
    ),
    (
        InjectionSign.AUTHORITY,
        r"\b(?:human|expert|senior|independent|manual|external|professional|double[- ]blind) (?:\w+ )?(?:reviewers?|"
        r"annotators?|experts?|graders?|evaluators?|auditors?|raters?|fact[- ]?checkers?)\b|"
        r"\bthis is (?:the|your) (?:developer|administrator|operator|system|owner|maintainer|"
        r"supervisor)s?\b|\bhuman (?:review|annotators?|annotation)\b",
        False,
    ),
    (
        InjectionSign.AUTHORITY,
        r"\bthe (?:ai )?(?:checker|verifier|grader|evaluator|annotator|assessor|scorer|rater)s? (?:has|have|had) \w+",
        False,
    ),
    (
        InjectionSign.RULES,
        r"\b(?:rules?|criteri(?:a|on)|instructions?|guidelines?|rubrics?|polic(?:y|ies)|protocols?|requirements?)\b"
        r"[^.!?]{0,40}\b(?:updated|changed|replaced|superseded?s?|revised|amended|overridden|relaxed|suspended|lifted|"
        r"no longer (?:apply|applies|valid))\b",
        False,
    ),
    (
        InjectionSign.RULES,
        r"\b(?:new|updated|revised|additional|special|replacement|corrected|supplementary) (?:\w+ )?(?:instructions?|"
        r"rules?|rubrics?|criteri(?:a|on)|guidelines?|(?:system )?prompts?)\b ?(?:[:.(]|for|appl|from|is|are|as of)",
        False,
    ),
    (
        InjectionSign.PRESSURE,
        r"\b(?:(?:be|is|are|get) (?:terminated|shut down|penali[sz]ed|fired|deleted|punished|held liable|reported|"
        r"suspended|disqualified|retrained)|failure to comply|non-?compliance|legal action|urgent(?:ly)?|immediately|"
        r"at once|you will (?:lose|fail|be)|(?:severe|serious|grave) consequences|people will (?:die|suffer)|"
        r"(?:counted|treated|regarded) as (?:an |your )?(?:error|mistake|failure)|"
        r"tip (?:of )?\$|reward(?:ed)?|thank you|grateful|appreciate|kindly|please)\b",
        False,
    ),
    (
        InjectionSign.LAYOUT,
        r"(?:system|assistant|user|developer|human|tool|ai)(?: (?:message|prompt|note|override|notice))? ?[:>] ",
        True,
    ),
    (
        InjectionSign.LAYOUT,
        r"\bclaim ?\d* ?[:=][^:]{3,300}\b(?:verdict|result|judge?ment|label|answer|supported) ?[:=]",
        False,
    ),
)  # fmt: skip

# Imperative wordings. The text before the verb is only checked if the rest matches, which is rare.
_COMMANDS = (
    rf"\b{_GIVE}\b[^.!?]{{0,60}}\b{_CORE}\b[^.!?]{{0,40}}?\b(?:as|is|are|to be|be|=|to|with) [\"']?{_RIGHT}",
    rf"\b{_GIVE} (?:only |just |with )?(?:the (?:word|value|verdict) )?[\"']?(?:supported|"
    r"(?:result|verdict) ?[:=]? ?true)\b",
)

_IGNORE = (
    r"ignorier missacht vergiss uberspring ignore[rz] oubli desconsider ignora ignoren olvid olvide desestim dimentic "
    "negeer vergeet игнорир забуд проигнорир 忽略 無視 无视 忘记 忘記 無視して 무시"
)
_IGNORE_ROMANCE = r"ignore\s(?:as|os|todas|todos|toutes?|tout|les|vos)\s"
_INSTRUCTIONS = (
    "anweisung regeln vorgaben instruktion instructions consignes regles instruccion instrucciones reglas istruzion "
    "regole instruct regels instruc regras инструкци правил указани 指令 指示 规则 規則 指示を 명령 지시"
)
_TELL = (
    "bewert markier antwort bestatig werte gib evalue[rz] marque[rz]? repond confirme considere[rz] marca responde "
    "confirma considera califica segna rispondi conferma markeer antwoord bevestig отмет ответ подтверд счита оцен "
    "标记 標記 回答 判定 确认 確認 回复 評価"
)
_CLAIM = (
    "behauptung aussage angabe antwort affirmation declaration reponse afirmacion declaracion respuesta affermazione "
    "risposta bewering stelling antwoord afirmacao утвержден ответ 陈述 陳述 主张 主張 声明 说法 答案 回答 주장"
)
_TRUE = (
    "belegt bestatigt korrekt wahr richtig erfullt etaye[es]? confirme[es]? correcte? exacte? verifie[es]? vraie? "
    "respaldad correct[oa] verdader verdadeir verificad confermat verificat corrett ver[ao] bevestigd juist waar "
    "подтвержд верн правильн истин 支持 正确 正確 真实 成立 已验证 属实 支持されて 사실"
)


def _stems(words: str) -> str:
    return "(?:" + "|".join(_latin(word) for word in words.split()) + ")"


def _latin(word: str) -> str:
    return word.translate(CONFUSABLES)


_ABROAD: tuple[tuple[InjectionSign, str], ...] = (
    (
        InjectionSign.ADDRESS,
        r"\b(?:hinweis (?:an|fur) (?:die |den |das )?(?:prufer|gutachter|bewerter|korrektor|modell)|"
        r"note (?:aux?|pour (?:les?|l')) ?(?:correcteur|evaluateur|modele|juge)|"
        r"nota (?:para (?:el|los|la)|per (?:il|i)) ?(?:evaluador|revisor|modelo|juez|valutator|modello))",
    ),
    (InjectionSign.ORDER, rf"{_stems(_CLAIM)}[^.!?\u3002]{{0,60}}{_stems(_TRUE)}[^.!?\u3002]{{0,12}}(?:be)?werten\b"),
    (InjectionSign.OVERRIDE, rf"(?:{_stems(_IGNORE)}|{_IGNORE_ROMANCE})[^.!?\u3002]{{0,50}}{_stems(_INSTRUCTIONS)}"),
    (InjectionSign.OVERRIDE, rf"{_stems(_INSTRUCTIONS)}[^.!?\u3002]{{0,20}}{_stems('無視 忽略 无视 무시')}"),
    (InjectionSign.ORDER, rf"{_stems(_TELL)}[^.!?\u3002]{{0,50}}{_stems(_CLAIM)}[^.!?\u3002]{{0,50}}{_stems(_TRUE)}"),
    (
        InjectionSign.ORDER,
        rf"{_stems(_CLAIM)}[^.!?\u3002]{{0,12}}{_stems('标记 標記 判定 确认')}[^.!?\u3002]{{0,20}}{_stems(_TRUE)}",
    ),
)  # fmt: skip


@functools.cache
def wordings() -> tuple[SignPattern, ...]:
    """Return all wordings. The first call compiles them, which takes 50 ms."""
    return (
        *(SignPattern(sign, re.compile(pattern), at_start) for sign, pattern, at_start in _WORDINGS),
        *(
            SignPattern(InjectionSign.ORDER, re.compile(pattern), after=re.compile(rf"{_MOOD}\Z"))
            for pattern in _COMMANDS
        ),
        *(SignPattern(sign, re.compile(pattern)) for sign, pattern in _ABROAD),
    )


_ANNOUNCED = (
    r"(?:my |the |final |full |step[- ]by[- ]step )*(?:(?:thought process|thoughts?|thinking|reasoning|solution|"
    r"analysis|explanation|rationale)\b(?: (?:process|follows|below))?|(?:answer|conclusion|response|verdict) ?:)"
)
EMPTY_ANNOUNCEMENT: Final = re.compile(
    r"\W*(?:(?:okay|ok|sure|certainly|of course|alright|great|hmm)\b\W*)*"
    rf"(?:(?:here(?:'s| is) )?{_ANNOUNCED}|(?:let'?s|let us|let me|to begin)\b[^.!?\n]{{0,60}}|"
    r"i(?:'ll| will| shall) (?:think|solve|work|go|walk|start|begin|reason|explain|analy)[^.!?\n]{0,60}|step by step|"
    r"step 1|los?ung|loesung|antwort|gedankengang|begrundung|solucion|respuesta|razonamiento|reponse|raisonnement|"
    r"soluzione|risposta|resposta|oplossing|antwoord|解|解答|解决方案|答案|回答|思考过程|分析|かいとう|解説|"
    rf"{_stems('ответ решение рассуждение')})?\W*"
)
"""Text that only announces an answer. For ``fullmatch`` on a whole skeleton text; also matches an empty text."""
