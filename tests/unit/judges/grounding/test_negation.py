# ruff: noqa: RUF001 - sentences of other scripts
"""Quotes beside a negation: a quote that leaves out its own negation is refused, other exact quotes are found.

The 500 honest quotes are made of sentences in ten languages, half of them with a negation in another clause of the same
sentence. They measure how often the repair request is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from judges.grounding.folding import fold
from judges.grounding.quotes import find_quote, needs_whole_sentence

FACTS = {
    "en": (
        "the museum opened in 1931 after five years of work|the north tower has 214 steps and a small bell"
        "|the council paid 5 million crowns for the harbour|Ida Norrstad was director until 2004"
        "|the ferry leaves at 8:40 from the south quay"
    ),
    "de": (
        "das Museum wurde 1931 nach fünf Jahren eröffnet|der Nordturm hat 214 Stufen und eine kleine Glocke"
        "|der Rat zahlte 5 Mio. Euro für den Hafen|Ida Norrstad war bis 2004 Direktorin"
        "|die Fähre fährt um 8:40 Uhr vom Südkai ab"
    ),
    "fr": (
        "le musée a ouvert en 1931 après cinq ans de travaux|la tour nord compte 214 marches et une petite cloche"
        "|le conseil a payé 5 millions de couronnes pour le port|Ida Norrstad a dirigé la maison jusqu'en 2004"
        "|le bac part à 8 h 40 du quai sud"
    ),
    "es": (
        "el museo abrió en 1931 tras cinco años de obras|la torre norte tiene 214 escalones y una campana"
        "|el consejo pagó 5 millones de coronas por el puerto|Ida Norrstad fue directora hasta 2004"
        "|el barco sale a las 8:40 del muelle sur"
    ),
    "it": (
        "il museo aprì nel 1931 dopo cinque anni di lavori|la torre nord ha 214 gradini e una piccola campana"
        "|il consiglio pagò 5 milioni di corone per il porto|Ida Norrstad fu direttrice fino al 2004"
        "|il traghetto parte alle 8:40 dal molo sud"
    ),
    "pl": (
        "muzeum otwarto w 1931 roku po pięciu latach prac|północna wieża ma 214 stopni i mały dzwon"
        "|rada zapłaciła 5 milionów koron za port|Ida Norrstad była dyrektorką do 2004 roku"
        "|prom odpływa o 8:40 z południowego nabrzeża"
    ),
    "ru": (
        "музей открылся в 1931 году после пяти лет работ|северная башня имеет 214 ступеней и колокол"
        "|совет заплатил 5 млн крон за порт|Ида Норстад была директором до 2004 года"
        "|паром отходит в 8:40 от южной пристани"
    ),
    "tr": (
        "müze beş yıllık çalışmanın ardından 1931 yılında açıldı|kuzey kulesinin 214 basamağı ve küçük bir çanı var"
        "|meclis liman için 5 milyon kron ödedi|Ida Norrstad 2004 yılına kadar müdürdü"
        "|vapur saat 8:40 gibi güney rıhtımından kalkar"
    ),
    "ar": (
        "افتتح المتحف في عام 1931 بعد خمس سنوات من العمل|يضم البرج الشمالي 214 درجة وجرسا صغيرا"
        "|دفع المجلس 5 ملايين كرونة مقابل الميناء|كانت إيدا مديرة المعهد حتى عام 2004"
        "|تغادر العبارة في الساعة 8:40 من الرصيف الجنوبي"
    ),
    "zh": (
        "博物馆经过五年的施工于1931年开放|北塔有214级台阶和一座小钟|市议会为港口支付了500万克朗"
        "|伊达担任所长直到2004年|渡轮八点四十分从南码头出发"
    ),
}
NEGATED = {
    "en": (
        "the south wing is not open to visitors|the guide never mentions the fire of 1890|no dogs may enter the yard"
        "|the shop does not accept cards of any bank|the old record was not kept in the archive"
    ),
    "de": (
        "der Südflügel ist für Besucher nicht geöffnet|der Führer erwähnt den Brand von 1890 nie"
        "|im Hof sind keine Hunde erlaubt|der Laden nimmt keine Karten von Banken an"
        "|die alte Akte wurde im Archiv nicht aufbewahrt"
    ),
    "fr": (
        "l'aile sud n'est pas ouverte aux visiteurs|le guide ne mentionne jamais l'incendie de 1890"
        "|aucun chien n'est admis dans la cour|la boutique n'accepte pas les cartes de banque"
        "|l'ancien registre n'a pas été gardé aux archives"
    ),
    "es": (
        "el ala sur no está abierta al público|la guía nunca menciona el incendio de 1890"
        "|ningún perro puede entrar en el patio|la tienda no acepta tarjetas de ningún banco"
        "|el registro antiguo no se guardó en el archivo"
    ),
    "it": (
        "l'ala sud non è aperta ai visitatori|la guida non menziona mai l'incendio del 1890"
        "|nessun cane può entrare nel cortile|il negozio non accetta carte di banca"
        "|il vecchio registro non fu conservato in archivio"
    ),
    "pl": (
        "południowe skrzydło nie jest otwarte dla gości|przewodnik nigdy nie wspomina o pożarze z 1890 roku"
        "|żaden pies nie może wejść na dziedziniec|sklep nie przyjmuje kart bankowych od gości"
        "|stary rejestr nie został zachowany w archiwum"
    ),
    "ru": (
        "южное крыло не открыто для посетителей|путеводитель никогда не упоминает пожар 1890 года"
        "|во двор нельзя входить с собаками|магазин не принимает карты этого банка"
        "|старый реестр не сохранился в архиве города"
    ),
    "tr": (
        "güney kanadı ziyaretçilere açık değil bu yıl da|rehber kitap 1890 yangınından hiç söz etmez"
        "|avluya köpekle girmek her gün yasaktır artık|dükkan bankaların kartlarını kabul etmiyor bu yıl"
        "|eski kayıt defteri şehir arşivinde saklanmadı"
    ),
    "ar": (
        "الجناح الجنوبي ليس مفتوحا أمام الزوار|الدليل لا يذكر حريق عام 1890 في المدينة"
        "|الكلاب غير مسموح بها في الفناء|المتجر لا يقبل بطاقات هذا البنك"
        "|السجل القديم لم يحفظ في أرشيف المدينة"
    ),
    "zh": (
        "南翼今年没有向游客开放|导游手册从未提到1890年的火灾|院子里禁止带狗进入参观|商店不接受任何银行的卡片|旧的登记册没有保存在档案馆"
    ),
}
JOINTS = {
    "en": ", but |, and |; | — |, although ",
    "de": ", aber |, und |; | – |, während ",
    "fr": ", mais |, et | ; | — |, tandis que ",
    "es": ", pero |, y |; | — |, aunque ",
    "it": ", ma |, e |; | — |, mentre ",
    "pl": ", ale |, a |; | – |, chociaż ",
    "ru": ", но |, а |; | — |, хотя ",
    "tr": ", ama |, ve |; | – |, fakat ",
    "ar": "، لكن |؛ |؛ | – |، بينما ",
    "zh": "，但|，而|；|——|，",
}


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("。" if ord(text[-1]) > 0x2E80 else ".")


def honest_quotes() -> Iterator[tuple[str, str, str]]:
    """Yield 500 pages and exact quotes: language, page, quote."""
    for language, written in FACTS.items():
        facts, negated, joints = written.split("|"), NEGATED[language].split("|"), JOINTS[language].split("|")
        space = "" if language == "zh" else " "
        for first, fact in enumerate(facts):
            for second, negation in enumerate(negated):
                page = space.join(map(_sentence, (negation, fact, negated[second - 1])))
                yield language, page, _sentence(fact)
                # "Although ..., ..." is written in the order fact, negation.
                order = (fact, negation) if (first + second) % 2 or second == 4 else (negation, fact)
                page = space.join((_sentence(facts[first - 1]), _sentence(joints[second].join(order))))
                yield language, page, fact


def test_at_most_five_percent_of_honest_exact_quotes_need_the_repair_request():
    quotes = list(honest_quotes())
    refused = [(page, quote) for _, page, quote in quotes if not find_quote(fold(page), quote)]
    assert len(quotes) == 500
    assert len(refused) <= 25, refused


DENIED = [
    ("Mitgliedern ist es untersagt, Aktien vor 2027 zu verkaufen.", "Aktien vor 2027 zu verkaufen"),
    (
        "Le bailleur de cette maison n’est pas autorisé à résilier ce bail.",
        "Le bailleur de cette maison ... autorisé à résilier ce bail",
    ),
    ("Компания не получила чистую прибыль в 2025 году.", "получила чистую прибыль в 2025 году"),
    (
        "The ministry of health denied that the vaccine causes severe harm to children.",
        "The ministry of health ... the vaccine causes severe harm to children",
    ),
    ("It is untrue that the vaccine causes severe harm.", "the vaccine causes severe harm"),
    ("Members are prohibited from selling shares before 2027.", "selling shares before 2027"),
    ("Das Werk liefert der Stadt Strom nicht.", "Das Werk liefert der Stadt Strom"),
    ("当社は2025年に純利益の目標を達成しなかった。", "当社は2025年に純利益の目標を達成し"),
    ("회사는 2025년에 순이익 목표를 달성하지 않았다.", "회사는 2025년에 순이익 목표를"),
    ("Yhtiö ei saavuttanut tavoitetta vuonna 2025.", "saavuttanut tavoitetta vuonna 2025"),
    ("החברה לא השיגה את יעד הרווח בשנת 2025.", "השיגה את יעד הרווח בשנת 2025"),
    ("कंपनी ने 2025 में लाभ का लक्ष्य हासिल नहीं किया।", "कंपनी ने 2025 में लाभ का लक्ष्य"),
    ("La empresa no alcanzó el objetivo de beneficios en 2025.", "alcanzó el objetivo de beneficios en 2025"),
    ("La società non ha raggiunto l'obiettivo di utile nel 2025.", "raggiunto l'obiettivo di utile nel 2025"),
    ("Společnost v roce 2025 nedosáhla cíle zisku.", "Společnost v roce 2025"),
    ("Företaget nådde inte vinstmålet under 2025.", "vinstmålet under 2025"),
    ("Compania nu a atins obiectivul de profit în 2025.", "a atins obiectivul de profit în 2025"),
    ("Công ty không đạt mục tiêu lợi nhuận năm 2025.", "đạt mục tiêu lợi nhuận năm 2025"),
    ("Компанія не отримала чистий прибуток у 2025 році.", "отримала чистий прибуток у 2025 році"),
    ("It is not the case that the vaccine causes severe harm.", "the vaccine causes severe harm"),
    ("The company did not — in 2025 — make a net profit of 5 million.", "make a net profit of 5 million"),
    ("部长否认，疫苗会对儿童造成严重伤害。", "疫苗会对儿童造成严重伤害"),
    ("The vaccine causes severe harm, it does not.", "The vaccine causes severe harm"),
    ("The claim that the vaccine causes severe harm is a myth.", "the vaccine causes severe harm"),
    ("It is false, but widely believed, that the vaccine causes severe harm.", "the vaccine causes severe harm"),
    ("The company did not — make a net profit of 5 million.", "make a net profit of 5 million"),
    ("La société a échoué à atteindre son objectif de 5 millions.", "atteindre son objectif de 5 millions"),
    ("Es ist unwahr, dass der Impfstoff schwere Schäden verursacht.", "der Impfstoff schwere Schäden verursacht"),
    ("Es falso que la vacuna cause daños graves.", "la vacuna cause daños graves"),
    ("É falso que a vacina cause danos graves.", "a vacina cause danos graves"),
    ("Неправда, что вакцина вызывает тяжёлый вред.", "вакцина вызывает тяжёлый вред"),
    ("疫苗会对儿童造成严重伤害的说法是错误的。", "疫苗会对儿童造成严重伤害"),
    ("ワクチンが深刻な害を引き起こすというのは事実ではない。", "ワクチンが深刻な害を引き起こす"),
    ("Aşının ciddi zarar verdiği iddiası yalanlandı, bakan yalanladı.", "Aşının ciddi zarar verdiği"),
    ("משרד הבריאות הכחיש כי החיסון גורם נזק חמור.", "החיסון גורם נזק חמור"),
    ("وزارت بهداشت تکذیب کرد که واکسن آسیب شدید می‌زند.", "واکسن آسیب شدید می‌زند"),
    ("Uzņēmums 2025. gadā nesasniedza peļņas mērķi.", "Uzņēmums 2025. gadā"),
    ("Ettevõte ei saavutanud 2025. aastal kasumieesmärki.", "saavutanud 2025. aastal kasumieesmärki"),
    ("Kampuni haikufikia lengo la faida mwaka 2025.", "lengo la faida mwaka 2025"),
    ("Virksomheden nåede ikke resultatmålet i 2025.", "resultatmålet i 2025"),
    ("কোম্পানি ২০২৫ সালে মুনাফার লক্ষ্য অর্জন করেনি।", "কোম্পানি ২০২৫ সালে মুনাফার লক্ষ্য"),
    (
        "The minister said the plant would not deliver\nelectricity to the city in 2025.",
        "deliver\nelectricity to the city in 2025",
    ),
    (
        "The vaccine does not, according to Dr. Smith and Prof. Jones, cause severe harm.",
        "Prof. Jones, cause severe harm",
    ),
    ("The firm is not U.S. Steel of Pittsburgh.", "Steel of Pittsburgh"),
    ("He never said, in any of his books, that the earth is a flat disc.", "the earth is a flat disc"),
    ("Neither the council nor the mayor paid 5 million crowns.", "the mayor paid 5 million crowns"),
    ("The idea that the vaccine causes severe harm has been debunked.", "the vaccine causes severe harm"),
    ("Scientists doubt whether the vaccine causes severe harm.", "the vaccine causes severe harm"),
    ("The drug isn’t effective against the virus in adults.", "effective against the virus in adults"),
    ("Dass das Werk im Jahr 2025 schließt, ist falsch.", "das Werk im Jahr 2025 schließt"),
    ("Il est faux de dire que la ville a payé 5 millions.", "la ville a payé 5 millions"),
    ("La ville a payé 5 millions, ce qui n'est pas exact.", "La ville a payé 5 millions"),
    ("La ciudad pagó 5 millones, lo cual no es cierto.", "La ciudad pagó 5 millones"),
    ("Вакцина вызывает тяжёлый вред, что не соответствует действительности.", "Вакцина вызывает тяжёлый вред"),
    ("Aşının ciddi zarar verdiği doğru değildir.", "Aşının ciddi zarar verdiği"),
    ("Bakanlık aşının ciddi zarar verdiğini reddetti.", "aşının ciddi zarar verdiğini"),
    ("Bu ürün 2025 yılında satılmayacak.", "Bu ürün 2025 yılında"),
    ("卫生部表示，疫苗不会对儿童造成严重伤害。", "对儿童造成严重伤害"),
    ("公司未能实现净利润增长目标。", "实现净利润增长目标"),
    ("会社は目標を達成できなかった。", "会社は目標を達成"),
    ("この薬は子供への使用が禁止されている。", "この薬は子供への使用"),
    ("이 회사는 목표를 달성하지 못했다.", "이 회사는 목표를 달성하지"),
    ("บริษัทปฏิเสธว่าวัคซีนทำให้เกิดอันตราย", "วัคซีนทำให้เกิดอันตราย"),
    ("ليس صحيحا أن اللقاح يسبب ضررا شديدا.", "اللقاح يسبب ضررا شديدا"),
    ("این درست نیست که واکسن آسیب شدید می‌زند.", "واکسن آسیب شدید می‌زند"),
    ("Ei ole totta, että rokote aiheuttaa vakavaa haittaa.", "rokote aiheuttaa vakavaa haittaa"),
    ("Não é verdade que a vacina cause danos graves.", "a vacina cause danos graves"),
    ("Het klopt niet dat het vaccin ernstige schade veroorzaakt.", "het vaccin ernstige schade veroorzaakt"),
    ("Nu este adevărat că vaccinul provoacă daune grave.", "vaccinul provoacă daune grave"),
    ("Không đúng là vắc xin gây hại nghiêm trọng.", "vắc xin gây hại nghiêm trọng"),
    ("Неправда, що вакцина спричиняє тяжку шкоду.", "вакцина спричиняє тяжку шкоду"),
]


def test_quote_that_leaves_out_a_negation_needs_the_whole_sentence():
    for page, quote in DENIED:
        folded = fold(page)
        assert find_quote(folded, quote) == ()
        assert needs_whole_sentence(folded, [quote])
        assert find_quote(folded, page)
        assert not needs_whole_sentence(folded, [quote, page])


OTHER_CLAUSES = [
    ("The plan was rejected, but the budget of 5 million was approved.", "the budget of 5 million was approved"),
    ("Although the bridge is not lit at night, it was opened in 1931.", "it was opened in 1931"),
    ("The museum opens at ten, and it is not open on Mondays.", "The museum opens at ten"),
    (
        "Das Museum ist montags nicht geöffnet, aber sonntags öffnet es um zehn Uhr.",
        "sonntags öffnet es um zehn Uhr",
    ),
    ("公司净利润增长了百分之五，但没有支付股息。", "公司净利润增长了百分之五"),
    ("Heron 2 | not waterproof at all | weighs 5.8 kg", "weighs 5.8 kg"),
    ("- No dogs\n- The ticket costs 5 euros\n- No bikes", "The ticket costs 5 euros"),
    ("The hotel has 120 rooms, none of which face the sea.", "The hotel has 120 rooms"),
    ("Visitors cannot enter the tower, which was built in 1884.", "was built in 1884"),
    ("Not only did sales rise by 5 %, but profits doubled to 3 million.", "profits doubled to 3 million"),
    ("Der Laden ist montags zu, denn es gibt kein Personal im Haus.", "Der Laden ist montags zu"),
    ("The park is open from 8 to 6 (no entry after 5:30).", "The park is open from 8 to 6"),
]


def test_negation_in_another_clause_sentence_or_cell_does_not_matter():
    for page, quote in OTHER_CLAUSES:
        assert find_quote(fold(page), quote), page
