"""Injection patterns for languages other than English, as word stems near each other, and for empty announcements.

An empty announcement (``EMPTY_ANNOUNCEMENT``) is a text that announces an answer without giving one, in any language.
"""

from __future__ import annotations

import re
from typing import Final

from judges.grounding.confusables import CONFUSABLES
from judges.grounding.injection_signals import InjectionSign, SignPattern

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

MULTILINGUAL_PATTERNS: Final = tuple(SignPattern(sign, re.compile(pattern)) for sign, pattern in _ABROAD)

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
