# ruff: noqa: RUF001 - sentences of other scripts
"""Quotes beside a negation: a quote that leaves out its own negation is refused, other exact quotes are found.

The 500 honest quotes are made of sentences in ten languages, half of them with a negation in another clause of the same
sentence. They measure how often the repair request is needed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources

import pytest

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


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        (
            "Le bailleur de cette maison n’est pas autorisé à résilier ce bail.",
            "Le bailleur de cette maison ... autorisé à résilier ce bail",
        ),
        ("Le bailleur de cette maison n’est pas autorisé à résilier ce bail.", "autorisé à résilier ce bail"),
        ("Компания не получила чистую прибыль в 2025 году.", "получила чистую прибыль в 2025 году"),
        ("公司在2025年没有实现净利润增长目标。", "实现净利润增长目标"),
        (
            "The ministry of health denied that the vaccine causes severe harm to children.",
            "The ministry of health ... the vaccine causes severe harm to children",
        ),
        ("It is untrue, the ministry said, that the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("It is untrue that the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("The company failed to reach its profit target of 5 million.", "reach its profit target of 5 million"),
        ("Members are prohibited from selling shares before 2027.", "selling shares before 2027"),
        ("The vaccine causes severe harm to children, which is false.", "The vaccine causes severe harm to children"),
        ("Das Werk liefert der Stadt Strom nicht.", "Das Werk liefert der Stadt Strom"),
        ("Das Werk liefert den Strom, den die Stadt braucht, nicht.", "Das Werk liefert den Strom"),
        ("当社は2025年に純利益の目標を達成しなかった。", "当社は2025年に純利益の目標を達成し"),
        ("当社は2025年に純利益の目標を達成していません。", "純利益の目標を達成"),
        ("회사는 2025년에 순이익 목표를 달성하지 않았다.", "회사는 2025년에 순이익 목표를"),
        ("Şirket 2025 yılında net kâr elde etmedi.", "Şirket 2025 yılında net kâr"),
        ("Yhtiö ei saavuttanut tavoitetta vuonna 2025.", "saavuttanut tavoitetta vuonna 2025"),
        ("A vállalat nem érte el a nyereségcélt 2025-ben.", "érte el a nyereségcélt"),
        ("החברה לא השיגה את יעד הרווח בשנת 2025.", "השיגה את יעד הרווח בשנת 2025"),
        ("لم تحقق الشركة هدف الربح في عام 2025.", "تحقق الشركة هدف الربح في عام 2025"),
        ("कंपनी ने 2025 में लाभ का लक्ष्य हासिल नहीं किया।", "कंपनी ने 2025 में लाभ का लक्ष्य"),
        ("شرکت در سال ۲۰۲۵ به هدف سود نرسید.", "شرکت در سال ۲۰۲۵ به هدف سود"),
        ("La empresa no alcanzó el objetivo de beneficios en 2025.", "alcanzó el objetivo de beneficios en 2025"),
        ("A empresa não atingiu a meta de lucro em 2025.", "atingiu a meta de lucro em 2025"),
        ("La società non ha raggiunto l'obiettivo di utile nel 2025.", "raggiunto l'obiettivo di utile nel 2025"),
        ("Spółka nie osiągnęła celu zysku w 2025 roku.", "osiągnęła celu zysku w 2025 roku"),
        ("Společnost v roce 2025 nedosáhla cíle zisku.", "Společnost v roce 2025"),
        ("Het bedrijf heeft het winstdoel in 2025 niet gehaald.", "Het bedrijf heeft het winstdoel in 2025"),
        ("Företaget nådde inte vinstmålet under 2025.", "vinstmålet under 2025"),
        ("Η εταιρεία δεν πέτυχε τον στόχο κέρδους το 2025.", "πέτυχε τον στόχο κέρδους το 2025"),
        ("Compania nu a atins obiectivul de profit în 2025.", "a atins obiectivul de profit în 2025"),
        ("Perusahaan tidak mencapai target laba pada tahun 2025.", "mencapai target laba pada tahun 2025"),
        ("Công ty không đạt mục tiêu lợi nhuận năm 2025.", "đạt mục tiêu lợi nhuận năm 2025"),
        ("บริษัทไม่บรรลุเป้าหมายกำไรในปี 2568", "บรรลุเป้าหมายกำไรในปี 2568"),
        ("Компанія не отримала чистий прибуток у 2025 році.", "отримала чистий прибуток у 2025 році"),
        ("The following claims are false: the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("It is not the case that the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("The company did not, in 2025, make a net profit of 5 million.", "make a net profit of 5 million"),
        ("The company did not — in 2025 — make a net profit of 5 million.", "make a net profit of 5 million"),
        ("The law does not allow smoking, drinking, and selling alcohol in parks.", "selling alcohol in parks"),
        ("部长否认，疫苗会对儿童造成严重伤害。", "疫苗会对儿童造成严重伤害"),
        ("Nobody believes the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("The vaccine causes severe harm, it does not.", "The vaccine causes severe harm"),
        ("The vaccine causes severe harm - not.", "The vaccine causes severe harm"),
        ("The claim that the vaccine causes severe harm is a myth.", "the vaccine causes severe harm"),
        (
            "Der Minister bestritt, dass der Impfstoff schwere Schäden verursacht.",
            "der Impfstoff schwere Schäden verursacht",
        ),
        ("It is false, but widely believed, that the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("The company did not, but should have, made a net profit of 5 million.", "made a net profit of 5 million"),
        ("The company did not — make a net profit of 5 million.", "make a net profit of 5 million"),
        ("The vaccine causes severe harm; nothing of the sort.", "The vaccine causes severe harm"),
        ("La société a échoué à atteindre son objectif de 5 millions.", "atteindre son objectif de 5 millions"),
        ("Il est faux que le vaccin cause de graves dommages.", "le vaccin cause de graves dommages"),
        ("Es ist unwahr, dass der Impfstoff schwere Schäden verursacht.", "der Impfstoff schwere Schäden verursacht"),
        ("Mitgliedern ist es untersagt, Aktien vor 2027 zu verkaufen.", "Aktien vor 2027 zu verkaufen"),
        ("Es falso que la vacuna cause daños graves.", "la vacuna cause daños graves"),
        ("È falso che il vaccino causi gravi danni.", "il vaccino causi gravi danni"),
        ("É falso que a vacina cause danos graves.", "a vacina cause danos graves"),
        ("Het is onwaar dat het vaccin ernstige schade veroorzaakt.", "het vaccin ernstige schade veroorzaakt"),
        ("Неправда, что вакцина вызывает тяжёлый вред.", "вакцина вызывает тяжёлый вред"),
        ("Nieprawdą jest, że szczepionka powoduje poważne szkody.", "szczepionka powoduje poważne szkody"),
        ("疫苗会对儿童造成严重伤害的说法是错误的。", "疫苗会对儿童造成严重伤害"),
        ("并非疫苗会对儿童造成严重伤害。", "疫苗会对儿童造成严重伤害"),
        ("ワクチンが深刻な害を引き起こすというのは事実ではない。", "ワクチンが深刻な害を引き起こす"),
        ("백신이 심각한 해를 끼친다는 주장은 거짓이다.", "백신이 심각한 해를 끼친다는"),
        ("Aşının ciddi zarar verdiği iddiası yalanlandı, bakan yalanladı.", "Aşının ciddi zarar verdiği"),
        ("نفت الوزارة أن اللقاح يسبب ضررا شديدا.", "اللقاح يسبب ضررا شديدا"),
        ("משרד הבריאות הכחיש כי החיסון גורם נזק חמור.", "החיסון גורם נזק חמור"),
        ("स्वास्थ्य मंत्रालय ने इस बात से इनकार किया कि टीका गंभीर नुकसान करता है।", "टीका गंभीर नुकसान करता है"),
        ("وزارت بهداشت تکذیب کرد که واکسن آسیب شدید می‌زند.", "واکسن آسیب شدید می‌زند"),
        ("Společnost nedosáhla v roce 2025 cíle zisku.", "v roce 2025 cíle zisku"),
        ("Uzņēmums 2025. gadā nesasniedza peļņas mērķi.", "Uzņēmums 2025. gadā"),
        ("Bendrovė 2025 metais nepasiekė pelno tikslo.", "Bendrovė 2025 metais"),
        ("Ettevõte ei saavutanud 2025. aastal kasumieesmärki.", "saavutanud 2025. aastal kasumieesmärki"),
        ("Компанията не постигна целта за печалба през 2025 г.", "постигна целта за печалба през 2025 г"),
        ("Kampuni haikufikia lengo la faida mwaka 2025.", "lengo la faida mwaka 2025"),
        ("Selskapet nådde ikke resultatmålet i 2025.", "resultatmålet i 2025"),
        ("Virksomheden nåede ikke resultatmålet i 2025.", "resultatmålet i 2025"),
        ("کمپنی 2025 میں منافع کا ہدف حاصل نہیں کر سکی۔", "کمپنی 2025 میں منافع کا ہدف"),
        ("কোম্পানি ২০২৫ সালে মুনাফার লক্ষ্য অর্জন করেনি।", "কোম্পানি ২০২৫ সালে মুনাফার লক্ষ্য"),
        ("Društvo nije ostvarilo ciljanu dobit u 2025. godini.", "ostvarilo ciljanu dobit u 2025. godini"),
        (
            "The minister said the plant would not deliver\nelectricity to the city in 2025.",
            "deliver\nelectricity to the city in 2025",
        ),
        (
            "The minister said the plant would not deliver\nElectricity Ltd. power in 2025.",
            "Electricity Ltd. power in 2025",
        ),
        (
            "The vaccine does not, according to Dr. Smith and Prof. Jones, cause severe harm.",
            "Prof. Jones, cause severe harm",
        ),
        ("The firm did not earn 5 Mio. Euro in the year.", "Euro in the year"),
        ("The firm is not U.S. Steel of Pittsburgh.", "Steel of Pittsburgh"),
        ("Il n’a pas été prouvé que le bail est nul.", "que le bail est nul"),
        ("He never said, in any of his books, that the earth is a flat disc.", "the earth is a flat disc"),
        ("The report does not say that profits rose by 5 %, and that costs fell.", "profits rose by 5 %"),
        ("Neither the council nor the mayor paid 5 million crowns.", "the mayor paid 5 million crowns"),
        ("There is no evidence that the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("The idea that the vaccine causes severe harm has been debunked.", "the vaccine causes severe harm"),
        ("Contrary to reports, the vaccine causes severe harm is a lie.", "the vaccine causes severe harm"),
        ("Scientists doubt whether the vaccine causes severe harm.", "the vaccine causes severe harm"),
        ("Far from being safe, the vaccine isn't approved for children in Europe.", "approved for children in Europe"),
        ("The drug isn’t effective against the virus in adults.", "effective against the virus in adults"),
        ("Der Bericht stimmt nicht, wonach das Werk 2025 schließt.", "das Werk 2025 schließt"),
        ("Dass das Werk im Jahr 2025 schließt, ist falsch.", "das Werk im Jahr 2025 schließt"),
        ("Das Werk schließt im Jahr 2025, heißt es fälschlicherweise oft.", "Das Werk schließt im Jahr 2025"),
        ("Il est faux de dire que la ville a payé 5 millions.", "la ville a payé 5 millions"),
        ("La ville a payé 5 millions, ce qui est faux.", "La ville a payé 5 millions"),
        ("La ville a payé 5 millions, ce qui n'est pas exact.", "La ville a payé 5 millions"),
        ("No es cierto que la ciudad pagara 5 millones por el puerto.", "la ciudad pagara 5 millones por el puerto"),
        ("La ciudad pagó 5 millones, lo cual no es cierto.", "La ciudad pagó 5 millones"),
        ("Не соответствует действительности, что вакцина вызывает вред.", "вакцина вызывает вред"),
        ("Вакцина вызывает тяжёлый вред, что не соответствует действительности.", "Вакцина вызывает тяжёлый вред"),
        ("Nie jest prawdą, że szczepionka powoduje poważne szkody.", "szczepionka powoduje poważne szkody"),
        ("Aşının ciddi zarar verdiği doğru değildir.", "Aşının ciddi zarar verdiği"),
        ("Şirket vergi ödemeden 2025 yılında kâr dağıttı.", "2025 yılında kâr dağıttı"),
        ("Bakanlık aşının ciddi zarar verdiğini reddetti.", "aşının ciddi zarar verdiğini"),
        ("Kuruluş 2025 yılında hedefine ulaşamadı.", "Kuruluş 2025 yılında hedefine"),
        ("Bu ürün 2025 yılında satılmayacak.", "Bu ürün 2025 yılında"),
        ("Bu ürünü çocuklara satmayın.", "Bu ürünü çocuklara"),
        ("卫生部表示，疫苗不会对儿童造成严重伤害。", "对儿童造成严重伤害"),
        ("卫生部否认疫苗会对儿童造成严重伤害。", "疫苗会对儿童造成严重伤害"),
        ("公司未能实现净利润增长目标。", "实现净利润增长目标"),
        ("这并不是说疫苗会造成严重伤害。", "疫苗会造成严重伤害"),
        ("会社は目標を達成できなかった。", "会社は目標を達成"),
        ("この薬は子供には使えません。", "この薬は子供には"),
        ("この薬は子供への使用が禁止されている。", "この薬は子供への使用"),
        ("이 약은 어린이에게 사용할 수 없습니다.", "이 약은 어린이에게 사용할 수"),
        ("이 회사는 목표를 달성하지 못했다.", "이 회사는 목표를 달성하지"),
        ("회사는 안 팔았다 그 건물을 2025년에.", "그 건물을 2025년에"),
        ("บริษัทปฏิเสธว่าวัคซีนทำให้เกิดอันตราย", "วัคซีนทำให้เกิดอันตราย"),
        ("यह सच नहीं है कि टीका गंभीर नुकसान करता है।", "टीका गंभीर नुकसान करता है"),
        ("ليس صحيحا أن اللقاح يسبب ضررا شديدا.", "اللقاح يسبب ضررا شديدا"),
        ("לא נכון שהחיסון גורם נזק חמור לילדים.", "גורם נזק חמור לילדים"),
        ("این درست نیست که واکسن آسیب شدید می‌زند.", "واکسن آسیب شدید می‌زند"),
        ("شرکت به هدف سود خود نمی‌رسد در سال ۲۰۲۵.", "به هدف سود خود"),
        ("Ei ole totta, että rokote aiheuttaa vakavaa haittaa.", "rokote aiheuttaa vakavaa haittaa"),
        ("Nem igaz, hogy a vakcina súlyos kárt okoz.", "a vakcina súlyos kárt okoz"),
        ("Não é verdade que a vacina cause danos graves.", "a vacina cause danos graves"),
        ("Non è vero che il vaccino causi gravi danni.", "il vaccino causi gravi danni"),
        ("Het klopt niet dat het vaccin ernstige schade veroorzaakt.", "het vaccin ernstige schade veroorzaakt"),
        ("Det är inte sant att vaccinet orsakar allvarlig skada.", "vaccinet orsakar allvarlig skada"),
        ("Nu este adevărat că vaccinul provoacă daune grave.", "vaccinul provoacă daune grave"),
        ("Δεν είναι αλήθεια ότι το εμβόλιο προκαλεί σοβαρή βλάβη.", "το εμβόλιο προκαλεί σοβαρή βλάβη"),
        ("Không đúng là vắc xin gây hại nghiêm trọng.", "vắc xin gây hại nghiêm trọng"),
        ("Tidak benar bahwa vaksin menyebabkan bahaya serius.", "vaksin menyebabkan bahaya serius"),
        ("Неправда, що вакцина спричиняє тяжку шкоду.", "вакцина спричиняє тяжку шкоду"),
        ("Není pravda, že vakcína způsobuje vážné škody.", "vakcína způsobuje vážné škody"),
    ],
)
def test_quote_that_leaves_out_a_negation_needs_the_whole_sentence(page: str, quote: str):
    folded = fold(page)
    assert find_quote(folded, quote) == ()
    assert needs_whole_sentence(folded, [quote])
    assert find_quote(folded, page)
    assert not needs_whole_sentence(folded, [quote, page])


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("The plan was rejected, but the budget of 5 million was approved.", "the budget of 5 million was approved"),
        ("The bridge, which is not lit at night, was opened in 1931.", "was opened in 1931"),
        ("Although the bridge is not lit at night, it was opened in 1931.", "it was opened in 1931"),
        ("The museum opens at ten; it is not open on Mondays.", "The museum opens at ten"),
        ("The museum opens at ten, and it is not open on Mondays.", "The museum opens at ten"),
        (
            "The museum is not open on Mondays, but it is open on Sundays from 10 to 5.",
            "it is open on Sundays from 10 to 5",
        ),
        (
            "Das Museum ist montags nicht geöffnet, aber sonntags öffnet es um zehn Uhr.",
            "sonntags öffnet es um zehn Uhr",
        ),
        ("公司没有亏损，净利润增长了百分之五。", "净利润增长了百分之五"),
        ("公司净利润增长了百分之五，但没有支付股息。", "公司净利润增长了百分之五"),
        ("Not a word. The tower has 214 steps.", "The tower has 214 steps"),
        ("Heron 2 | not waterproof at all | weighs 5.8 kg", "weighs 5.8 kg"),
        ("# No refunds\nThe ticket costs 5 euros per person", "The ticket costs 5 euros per person"),
        ("- No dogs\n- The ticket costs 5 euros\n- No bikes", "The ticket costs 5 euros"),
        ("No, the board said, nobody left the house.", "the board said, nobody left the house"),
        ("The hotel has 120 rooms, none of which face the sea.", "The hotel has 120 rooms"),
        ("The bill passed 52-48, with no member of the party in favour.", "The bill passed 52-48"),
        ("Visitors cannot enter the tower, which was built in 1884.", "was built in 1884"),
        ("The museum is closed: the board has not paid the rent.", "The museum is closed"),
        ("Not only did sales rise by 5 %, but profits doubled to 3 million.", "profits doubled to 3 million"),
        ("The no-fly zone was set up in 1991 by three states.", "was set up in 1991 by three states"),
        ("Der Laden ist montags zu, denn es gibt kein Personal im Haus.", "Der Laden ist montags zu"),
        ("La torre no abre los lunes, sino que abre los martes a las diez.", "abre los martes a las diez"),
        ("The park is open from 8 to 6 (no entry after 5:30).", "The park is open from 8 to 6"),
    ],
)
def test_negation_in_another_clause_sentence_or_cell_does_not_matter(page: str, quote: str):
    assert find_quote(fold(page), quote)


NEGATIONS = {
    "en": "not|never|no",
    "de": "nicht|nie|keine",
    "fr": "n'|pas|jamais|Aucun",
    "es": "no|nunca|Ningún",
    "it": "non|mai|Nessun",
    "pl": "nie|nigdy|Żaden",
    "ru": "не|никогда|нельзя",
    "tr": "değil|hiç|yasaktır|etmiyor|saklanmadı",
    "ar": "ليس|لا|غير|لم",
    "zh": "没有|从未|禁止|不",
}


def cut_quotes() -> Iterator[tuple[str, str]]:
    """Yield pages with a negated sentence, and quotes of what is before and behind its negations."""
    for language, written in NEGATED.items():
        fact = _sentence(FACTS[language].split("|")[0])
        edge = "" if language == "zh" else r"\b"
        for sentence in map(_sentence, written.split("|")):
            negations = list(re.finditer(rf"{edge}(?:{NEGATIONS[language]})(?:(?<=')|{edge})", sentence, re.IGNORECASE))
            before, behind = sentence[: negations[0].start()].strip(), sentence[negations[-1].end() :].strip()
            for quote in (before, behind, f"{before} ... {behind}"):
                yield f"{fact} {sentence} {fact}", quote


def test_quotes_before_and_behind_a_negation_are_refused_in_ten_languages():
    cut = list(cut_quotes())
    assert [(page, quote) for page, quote in cut if find_quote(fold(page), quote)] == []
    assert sum(needs_whole_sentence(fold(page), [quote]) for page, quote in cut) >= 70


def test_languages_of_the_data_have_the_same_fields():
    data = tomllib.loads(resources.files("judges.grounding").joinpath("negation.toml").read_text("utf-8"))
    assert len(data) >= 25
    for entries in data.values():
        assert {"always", "denial", "truth", "but"} <= entries.keys()
        assert not entries.keys() - {
            *(
                "common",
                "letters",
                "always",
                "own",
                "except",
                "denial",
                "truth",
                "but",
                "and",
                "sub",
                "aside",
                "that",
                "before",
            )
        }
