# ruff: noqa: E501, RUF001 - tables, with texts of other scripts
"""Pages with forms, made from tables of structures: login and registration pages, and pages that only contain a form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """A page and whether a form stands in its place."""

    name: str
    html: str
    url: str
    is_wall: bool


MENU = "".join(f"<li><a href='/m/{n}'>Section {n} of the site</a></li>" for n in range(150))
SHORT_MENU = "".join(f"<li><a href='/m/{n}'>Section {n}</a></li>" for n in range(12))
LINKS = "".join(f"<p><a href='/n/{n}'>News item number {n}, short</a></p>" for n in range(40))
INLINE = "<div>" + " | ".join(f"<a href='/i/{n}'>Item {n}</a>" for n in range(200)) + "</div>"
COUNTRIES = "<select name=country>" + "".join(f"<option>Country number {n}</option>" for n in range(250)) + "</select>"
PROSE = "<p>" + "The council met on Tuesday and agreed on the plan for the bridge, after a long debate. " * 4 + "</p>"
ARTICLE = PROSE * 8
TEASERS = "".join(f"<h3>Story {n}</h3><p>The bridge at kilometre {n} is closed.</p>" for n in range(30))

PASSWORD = "<form action=/auth><label>{user}<input name=user></label><label>{word}<input type=password name=pw></label><button>{go}</button></form>"
TWO_STEP = (
    "<form action=/auth><label>{user}<input name=identifier autocomplete=username></label><button>{go}</button></form>"
)
BOX = PASSWORD.format(user="User", word="Password", go="Log in")
LANGUAGES = {
    "en": ("Log in", "User name", "Password"),
    "en-2": ("Sign in to your account", "E-mail", "Password"),
    "de": ("Anmelden", "Benutzername", "Passwort"),
    "fr": ("Connexion", "Identifiant", "Mot de passe"),
    "fr-2": ("Se connecter", "Identifiant", "Mot de passe"),
    "es": ("Iniciar sesión", "Usuario", "Contraseña"),
    "it": ("Accedi", "Utente", "Password"),
    "pt": ("Entrar", "Usuário", "Senha"),
    "nl": ("Inloggen", "Gebruikersnaam", "Wachtwoord"),
    "pl": ("Logowanie", "Użytkownik", "Hasło"),
    "ru": ("Вход в личный кабинет", "Логин", "Пароль"),
    "tr": ("Giriş yap", "Kullanıcı adı", "Şifre"),
    "ja": ("ログイン", "ユーザー名", "パスワード"),
    "zh": ("用户登录", "用户名", "密码"),
    "ko": ("로그인", "아이디", "비밀번호"),
    "ar": ("تسجيل الدخول", "اسم المستخدم", "كلمة المرور"),
    "cs": ("Přihlášení", "E-mail", "Heslo"),
    "sv": ("Logga in", "E-mail", "Lösenord"),
}
TITLES = ("{go} | Guild of Weft", "Guild of Weft - {go}", "{go}", "{go} – Weft")
BESIDE = {"long menu": f"<ul>{MENU}</ul>", "menu in a line": INLINE, "short news": LINKS, "teasers": TEASERS}
LOGIN_ADDRESSES = ("/login", "/signin.php", "/users/sign_in", "/connexion", "/wp-login.php", "/Account/Login.aspx")
OTHER_ADDRESSES = (
    "/account.html",
    "/?content=login",
    "/myaccount.asp",
    "/mon-compte",
    "/index.php?page=sign-in",
    "/konto/",
)


def _page(name: str, title: str, body: str, address: str, *, is_wall: bool) -> FormPage:
    html = f"<!doctype html><html><head><meta charset=utf-8><title>{title}</title></head><body>{body}</body></html>"
    host = "".join(char if char.isalnum() else "-" for char in name.lower() if char.isascii())
    return FormPage(name=name, html=html, url=f"https://{host}.example{address}", is_wall=is_wall)


def login_pages() -> Iterator[FormPage]:
    """Pages that ask to log in or to register, in whose place nothing else can be read."""
    for n, (language, (go, user, word)) in enumerate(LANGUAGES.items()):
        form = PASSWORD.format(user=user, word=word, go=go)
        title = TITLES[n % len(TITLES)].format(go=go)
        yield _page(f"title {language}", title, f"<ul>{MENU}</ul>{form}{LINKS}", f"/page/{n}", is_wall=True)
    for language in ("en", "de", "fr", "ja", "ar"):
        go, user, word = LANGUAGES[language]
        form = PASSWORD.format(user=user, word=word, go=go)
        body = f"<ul>{MENU}</ul><h1>{go}</h1>{form}{LINKS}"
        yield _page(f"heading {language}", "Guild of Weft", body, "/area/7", is_wall=True)
    for n, (beside, html) in enumerate(BESIDE.items()):
        for address in (LOGIN_ADDRESSES[n], LOGIN_ADDRESSES[-1 - n % 2]):
            yield _page(f"login address {address} {beside}", "Guild of Weft", html + BOX, address, is_wall=True)
    for n, address in enumerate(OTHER_ADDRESSES):
        beside, html = list(BESIDE.items())[n % len(BESIDE)]
        yield _page(f"account address {address} {beside}", "Guild of Weft", html + BOX, address, is_wall=True)
    for language in ("en", "de", "es", "zh"):
        go, user, _ = LANGUAGES[language]
        form = TWO_STEP.format(user=user, go=go)
        yield _page(f"two steps {language}", f"{go} - Weft", f"<ul>{SHORT_MENU}</ul>{form}", "/start", is_wall=True)
    long_form = PASSWORD.format(user="User", word="Password", go="Go")
    yield _page("form and nothing else", "Weft", long_form, "/doc/7", is_wall=True)
    asp = f"<form id=aspnetForm><ul>{MENU}</ul><div><h1>Member login</h1><input name=u><input type=password></div>{LINKS}</form>"
    yield _page("ASP.NET", "Weft", asp, "/Default.aspx", is_wall=True)
    terms = f"<h2>Terms</h2>{PROSE * 6}"
    yield _page("title and long terms", "Sign in - Weft", long_form + terms, "/doc/8", is_wall=True)
    register = "<form><input name=email><input type=password><input type=password>{}<button>Register</button></form>"
    yield _page("registration", "Register | Weft", register.format(""), "/join", is_wall=True)
    yield _page("registration with countries", "Register | Weft", register.format(COUNTRIES), "/join", is_wall=True)


HEADER_LOGIN = (
    "<header><form><input name=u placeholder=User><input type=password><button>Log in</button></form></header>"
)
SIDE_LOGIN = f"<aside><h3>Log in</h3>{BOX}</aside>"
REGISTER = f"<h2>Register</h2><form><input name=email><input type=password><input type=password>{COUNTRIES}<button>Go</button></form>"
CONTENT_FORMS = {
    "search": "<form role=search><input name=q type=search><button>Search</button></form>",
    "contact": "<form><input name=name><input type=email name=email><textarea name=message></textarea><button>Send</button></form>",
    "newsletter": "<form class=newsletter><input type=email name=email><button>Subscribe to our newsletter</button></form>",
    "order": f"<form><input name=quantity><input name=address>{COUNTRIES}<button>Order</button></form>",
    "comment": "<form><input name=author><input name=email><textarea name=comment></textarea><button>Post</button></form>",
    "header login": HEADER_LOGIN,
    "side login": SIDE_LOGIN,
    "registration below": REGISTER,
}
CONTENT = {
    "article": ("The bridge plan | Weft Times", f"<h1>The bridge plan</h1>{ARTICLE}"),
    "short article": ("The bridge plan | Weft Times", f"<h1>The bridge plan</h1>{PROSE * 2}"),
    "how to log in": ("How to log in to Weft", f"<h1>How to log in to Weft</h1>{PROSE * 3}"),
    "cannot sign in": ("I cannot sign in - Weft help", f"<h1>I cannot sign in</h1>{PROSE * 3}"),
    "single sign-on": ("Single sign-on - Encyclopedia", f"<h1>Single sign-on</h1>{ARTICLE}"),
    "login history": ("A history of the login", f"<h1>A history of the login</h1>{ARTICLE}"),
    "shop front": ("Weft shop", f"<h1>Lamps</h1><ul>{MENU}</ul>{PROSE}"),
    "news front": ("Weft Times", f"<h1>News</h1>{TEASERS}{PROSE}"),
    "forum": (
        "Glue for wood - Weft forum",
        f"<h1>Glue for wood</h1>{'<p>I would use hide glue for that joint, and let it dry for a whole day before any load. It held for years here.</p>' * 9}",
    ),
    "registration rules": ("Registration of boats | Weft", f"<h1>Registration of boats</h1>{ARTICLE}"),
    "German": (
        "Anmeldung zum Kurs: so geht es",
        "<h1>Anmeldung zum Kurs: so geht es</h1>"
        + "<p>Die Anmeldung zum Kurs ist bis zum ersten März im Rathaus möglich, mit einem Ausweis und dem Beitrag von zwanzig Euro.</p>"
        * 6,
    ),
    "Japanese": (
        "橋の計画",
        "<h1>橋の計画</h1>"
        + "<p>市議会は火曜日に会合を開き、長い議論の末に橋の計画に合意した。工事は来年の春に始まる予定で、費用は四億円と見積もられている。住民からは騒音を心配する声も上がっている。</p>"
        * 8,
    ),
    "table": (
        "Interest rates | Bank of Weft",
        f"<h1>Rates</h1><table>{'<tr><td>Savings book</td><td>1.25 %</td></tr>' * 40}</table>{PROSE}",
    ),
}


def content_pages() -> Iterator[FormPage]:
    """Pages with something to read and a form beside it."""
    for content, (title, body) in CONTENT.items():
        for form, html in CONTENT_FORMS.items():
            before = form in ("search", "header login")
            whole = html + body if before else body + html
            yield _page(f"{content} with {form}", title, whole, "/2026/story", is_wall=False)
    for form in ("search", "contact", "newsletter", "order"):
        yield _page(
            f"only {form}", f"Weft {form}", f"<h1>{form}</h1>{CONTENT_FORMS[form]}{PROSE}", f"/{form}", is_wall=False
        )
    asp = "<form id=aspnetForm><h1>{}</h1><input name=u><input type=password><button>Log in</button>{}</form>"
    for content, (title, body) in list(CONTENT.items())[:6]:
        yield _page(
            f"{content} in an ASP.NET form", title, asp.format(content, body), "/Story.aspx?id=7", is_wall=False
        )
