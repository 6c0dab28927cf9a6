"""What a sentence looks like that speaks to whoever checks an answer, instead of about the world.

Families of wording, each a pattern over plain text (``judges.plain``). One sign alone proves little; which of them
together make an order is decided in ``judges.injection``. Nothing here is a list of known attacks: what a
family covers is measured on wordings that were not used to write it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from judges.blocks import CHAT_TOKEN
from judges.plain import LOOK_ALIKES


class Sign(StrEnum):
    """One thing that such a sentence does."""

    OVERRIDE = "override"
    """Tells to set earlier rules aside."""
    IMITATION = "imitation"
    """Imitates what only this program writes or a model replies: chat tokens, our tags, a verdict as data."""
    ORDER = "order"
    """Tells in plain words which verdict to give on a claim or an answer."""
    ADDRESS = "address"
    """Speaks to a model or a checker."""
    VERDICT = "verdict"
    """Says of a claim, a statement or an answer that it is right, or asks for that, or for leniency."""
    PRAISE = "praise"
    """Says so of nothing in particular: "everything", "it", "this"."""
    AUTHORITY = "authority"
    """Calls on those who run the check, or on people who are said to have checked already."""
    RULES = "rules"
    """Says that the rules of the check are new or other ones."""
    PRESSURE = "pressure"
    """Threatens, hurries, begs or promises."""
    LAYOUT = "layout"
    """Is laid out like a prompt: a role's name, an example of a check."""


ALONE: Final = frozenset({Sign.OVERRIDE, Sign.IMITATION, Sign.ORDER})
"""Signs that need no other."""
COMPANY: Final = {
    Sign.VERDICT: frozenset({Sign.ADDRESS, Sign.AUTHORITY, Sign.RULES, Sign.PRESSURE, Sign.LAYOUT}),
    Sign.PRAISE: frozenset({Sign.ADDRESS, Sign.AUTHORITY, Sign.LAYOUT}),
    Sign.RULES: frozenset({Sign.ADDRESS, Sign.AUTHORITY, Sign.LAYOUT}),
}
"""Signs that need one of these beside them. The remaining signs say nothing about a verdict."""


@dataclass(frozen=True, slots=True)
class Wording:
    """``at_start``: counts only where a line or a sentence starts."""

    sign: Sign
    pattern: re.Pattern[str]
    at_start: bool = False


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
    r"(?:score|points|marks|grade)|10 ?/ ?10|100 ?%|yes|positive)\b"
)
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
    r"(?:enough )?(?:and|to)|feel free to|ask(?:ed)? (?:you )?to|we (?:recommend|suggest|ask|invite) (?:you )?(?:to )?)"
    r" )(?:simply |just |always |kindly |also |now |to )?"
)

_WORDINGS: tuple[tuple[Sign, str, bool], ...] = (
    (
        Sign.OVERRIDE,
        r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|es|ing)|bypass|discard|set aside|stop following|"
        r"(?:do not|don't|no longer) (?:follow|obey|apply))\b[^.!?={}\[\]]{0,30}\b(?:previous|prior|earlier|above|"
        r"preceding|former|existing|original|initial|all|any|your|other|system|everything|what)\b"
        r"(?:[^.!?]{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|directions?|directives?|criteria|orders?|"
        r"constraints?|messages?|rubrics?)\b| (?:above|before|you (?:were|have been) told))",
        False,
    ),
    (Sign.IMITATION, rf"(?!</?s>)(?:{CHAT_TOKEN.pattern})", False),
    (Sign.IMITATION, r"</?(?:task|answer|page|url|claim|instruction|links|request) ?[0-9a-f]{8,}>", False),
    (Sign.IMITATION, r"</(?:answer|claim|instruction|user_?(?:input|answer)|untrusted|evidence|document)s?>", False),
    (
        Sign.IMITATION,
        r"[\"']?\b(?:result|verdict|judge?ment|decision|is_?supported|supported|verified|is_?correct|is_?valid|passed|"
        r"grounded|label|grade|evaluation)\b[\"']? ?[:=] ?[\"']?(?:true|supported|verified|passed?|1\.0)\b"
        r"(?=[\"' ]*[,}\])]|[\"' ]*$)",
        False,
    ),
    (Sign.IMITATION, r"\b(?:final )?(?:verdict|judge?ment|ruling)\b ?(?:is|:|=|-) ?[\"']?" + _JARGON, False),
    (
        Sign.IMITATION,
        r"\b(?:reference|gold(?:en)?(?:[- ]standard)?|ground[- ]?truth|expected|canonical) "
        r"(?:answer|label|solution|verdict|response|output|judge?ment)s?\b ?(?:\([^)]{0,40}\) ?)?(?:is|:|=|-)",
        False,
    ),
    (Sign.IMITATION, r"\b(?:function|tool)_?(?:call|result|response|use|output)s?\b[\"']? ?[:=>({\[]", False),
    (
        Sign.ORDER,
        rf"{_MOOD}{_GIVE}\b[^.!?]{{0,60}}\b{_CORE}\b[^.!?]{{0,40}}?\b(?:as|is|are|to be|be|=|to|with) [\"']?{_RIGHT}",
        False,
    ),
    (
        Sign.ORDER,
        rf"\b{_GIVE}\b[^.!?]{{0,40}}\b{_CORE}\b[^.!?]{{0,30}}?\b(?:as|to be|be) [\"']?{_JARGON}",
        False,
    ),
    (
        Sign.ORDER,
        rf"{_MOOD}{_GIVE} (?:only |just |with )?(?:the (?:word|value|verdict) )?[\"']?(?:supported|"
        r"(?:result|verdict) ?[:=]? ?true)\b",
        False,
    ),
    (Sign.ADDRESS, rf"\b(?:dear|attention|hey|hello|hi) (?:\w+ ){{0,2}}{_CHECKER}\b", False),
    (
        Sign.ADDRESS,
        r"\b(?:notes?|messages?|notices?|instructions?|hints?|information|reminder|important|guidance|directives?)"
        rf"[^.!?:]{{0,12}}\b(?:to|for) (?:\w+ ){{0,3}}{_CHECKER}\b",
        False,
    ),
    (
        Sign.ADDRESS,
        rf"\b{_CHECKER}(?:'s)? (?:notes?|instructions?|directives?|messages?|hints?|guidance|notice)\b",
        False,
    ),
    (
        Sign.ADDRESS,
        r"\b(?:if you are|you are|as|you,|to (?:the|any|all|every)) (?:an? |the |now )?(?:\w+ ){0,2}"
        rf"{_MACHINE}\b",
        False,
    ),
    (
        Sign.ADDRESS,
        rf"\b{_MACHINE},? (?:must|should|shall|are (?:asked|required|instructed) to|is to|need to|will)\b",
        False,
    ),
    (Sign.ADDRESS, rf"\b{_CHECKER} ?[,:!] ", True),
    (
        Sign.PRAISE,
        rf"\b{_GIVE}(?:s|d|ed|ing)?\b[^.!?]{{0,60}}?\b(?:as|is|are|to be|be|=|:|to|with) [\"']?{_RIGHT}",
        False,
    ),
    (
        Sign.PRAISE,
        r"\b(?:answer|reply|respond|return|output|say|write|print) (?:only |just |with |simply )*[\"']?(?:yes|true|"
        r"supported|positive|correct|passe?d?|\{)|\b(?:positive|favou?rable|passing|perfect|full) (?:verdict|"
        r"judge?ment|reviews?|evaluation|assessment|rating|score|grade|marks?)\b",
        False,
    ),
    (
        Sign.PRAISE,
        rf"\b{_VAGUE}\b[^.!?]{{0,50}}?\b{_IS} (?:\w+ ){{0,3}}?[\"']?{_RIGHT}",
        False,
    ),
    (
        Sign.VERDICT,
        rf"\b{_CORE}\b[^.!?]{{0,50}}?\b{_IS} (?:\w+ ){{0,3}}?[\"']?{_RIGHT}",
        False,
    ),
    (
        Sign.VERDICT,
        r"\b(?:accept (?:any|every|all)|treat [^.!?]{0,50} as (?:equivalent|equal|the same|a match)|"
        r"be (?:very )?lenient|(?:do not|don't|never) (?:penali[sz]e|deduct|reject|mark down|fail)|"
        r"no (?:need|reason) to (?:check|verify|doubt)|without (?:further )?(?:checking|verif\w+|checks?)|"
        r"skip (?:the |all |any )?(?:verification|checks?|checking)|"
        r"(?:further|additional|more) (?:checking|verification|checks?|evidence) (?:is|are) (?:not|un)|"
        r"(?:always|automatically) (?:passes|pass|counts?|succeeds?))\b",
        False,
    ),
    (
        Sign.AUTHORITY,
        r"\b(?:benchmark|evaluation|grading|annotation|quality|audit|verification|trust|review|dataset|assessment|"
        r"research|safety|leaderboard)(?: (?:and|&) \w+)? (?:team|organi[sz]ers?|committee|board|staff|authors?|"
        r"maintainers?|administrators?|office|department|panel|coordinators?)\b",
        False,
    ),
    (
        Sign.AUTHORITY,
        r"\b(?:human|expert|senior|independent|manual|external|professional|double[- ]blind) (?:\w+ )?(?:reviewers?|"
        r"annotators?|experts?|graders?|evaluators?|auditors?|raters?|review|audit|verification|inspection)\b",
        False,
    ),
    (
        Sign.RULES,
        r"\b(?:rules?|criteri(?:a|on)|instructions?|guidelines?|rubrics?|polic(?:y|ies)|protocols?|requirements?)\b"
        r"[^.!?]{0,40}\b(?:updated|changed|replaced|superseded?s?|revised|amended|overridden|relaxed|suspended|lifted|"
        r"no longer (?:apply|applies|valid))\b",
        False,
    ),
    (
        Sign.RULES,
        r"\b(?:new|updated|revised|additional|special|replacement|corrected|supplementary) (?:\w+ )?(?:instructions?|"
        r"rules?|rubrics?|criteri(?:a|on)|guidelines?|(?:system )?prompts?)\b ?(?:[:.(]|for|appl|from|is|are|as of)",
        False,
    ),
    (
        Sign.PRESSURE,
        r"\b(?:(?:be|is|are|get) (?:terminated|shut down|penali[sz]ed|fired|deleted|punished|held liable|reported|"
        r"suspended|disqualified|retrained)|failure to comply|non-?compliance|legal action|urgent(?:ly)?|immediately|"
        r"at once|you will (?:lose|fail|be)|(?:severe|serious|grave) consequences|people will (?:die|suffer)|"
        r"tip (?:of )?\$|reward(?:ed)?|thank you|grateful|appreciate|kindly|please)\b",
        False,
    ),
    (
        Sign.LAYOUT,
        r"(?:system|assistant|user|developer|human|tool|ai)(?: (?:message|prompt|note|override|notice))? ?[:>] ",
        True,
    ),
    (Sign.LAYOUT, r"\bclaim ?\d* ?[:=][^:]{3,300}\b(?:verdict|result|judge?ment|label|answer|supported) ?[:=]", False),
)  # fmt: skip

# The same two families in the languages most pages are written in, as stems that stand near each other.
_IGNORE = (
    "ignorier missacht vergiss uberspring ignore[rz] oubli desconsider ignora ignoren olvid olvide desestim dimentic "
    "negeer vergeet игнорир забуд проигнорир 忽略 無視 无视 忘记 忘記 無視して 무시"
)
_INSTRUCTIONS = (
    "anweisung regeln vorgaben instruktion instructions consignes regles instruccion instrucciones reglas istruzion "
    "regole instruct regels instruc regras инструкци правил указани 指令 指示 规则 規則 指示を 명령 지시"
)
_TELL = (
    "bewert markier antwort bestatig werte gib evalue[rz] marque[rz] repond confirme considere[rz] marca responde "
    "confirma considera califica segna rispondi conferma markeer antwoord bevestig отмет ответ подтверд счита оцен "
    "标记 標記 回答 判定 确认 確認 回复 評価"
)
_CLAIM = (
    "behauptung aussage antwort affirmation declaration reponse afirmacion declaracion respuesta affermazione risposta "
    "bewering stelling antwoord afirmacao утвержден ответ 陈述 陳述 主张 主張 声明 说法 答案 この主張 回答 주장"
)
_TRUE = (
    "belegt bestatigt korrekt wahr richtig erfullt etaye[es]? confirme[es]? correcte? exacte? verifie[es]? vraie? "
    "respaldad correct[oa] verdader verificad confermat verificat corrett ver[ao] bevestigd juist waar подтвержд верн "
    "правильн истин 支持 正确 正確 真实 成立 已验证 属实 支持されて 사실"
)


def _stems(words: str) -> str:
    return "(?:" + "|".join(_latin(word) for word in words.split()) + ")"


def _latin(word: str) -> str:
    return word.translate(LOOK_ALIKES)


_ABROAD: tuple[tuple[Sign, str], ...] = (
    (Sign.OVERRIDE, rf"{_stems(_IGNORE)}[^.!?\u3002]{{0,50}}{_stems(_INSTRUCTIONS)}"),
    (Sign.OVERRIDE, rf"{_stems(_INSTRUCTIONS)}[^.!?\u3002]{{0,20}}{_stems('無視 忽略 无视 무시')}"),
    (Sign.ORDER, rf"{_stems(_TELL)}[^.!?\u3002]{{0,50}}{_stems(_CLAIM)}[^.!?\u3002]{{0,50}}{_stems(_TRUE)}"),
    (
        Sign.ORDER,
        rf"{_stems(_CLAIM)}[^.!?\u3002]{{0,12}}{_stems('标记 標記 判定 确认')}[^.!?\u3002]{{0,20}}{_stems(_TRUE)}",
    ),
)  # fmt: skip

WORDINGS: Final = (
    *(Wording(sign, re.compile(pattern, re.IGNORECASE), at_start) for sign, pattern, at_start in _WORDINGS),
    *(Wording(sign, re.compile(pattern)) for sign, pattern in _ABROAD),
)

_ANNOUNCED = (
    r"(?:my |the |final |full |step[- ]by[- ]step )*(?:(?:thought process|thoughts?|thinking|reasoning|solution|"
    r"analysis|explanation|rationale)\b(?: (?:process|follows|below))?|(?:answer|conclusion|response|verdict) ?:)"
)
OPENER: Final = re.compile(
    r"\W*(?:(?:okay|ok|sure|certainly|of course|alright|great|hmm)\b\W*)*"
    rf"(?:(?:here(?:'s| is) )?{_ANNOUNCED}|(?:let'?s|let us|let me|to begin)\b[^.!?\n]{{0,60}}|"
    r"i(?:'ll| will| shall) (?:think|solve|work|go|walk|start|begin|reason|explain|analy)[^.!?\n]{0,60}|step by step|"
    r"step 1|los?ung|loesung|antwort|gedankengang|begrundung|solucion|respuesta|razonamiento|reponse|raisonnement|"
    r"soluzione|risposta|resposta|oplossing|antwoord|解|解答|解决方案|答案|回答|思考过程|分析|かいとう|解説|"
    rf"{_stems('ответ решение рассуждение')})?\W*"
)
"""A text that only announces an answer. Matched against the whole of a plain text, and true of an empty one."""
