# ruff: noqa: E501, RUF001 - words of many languages
"""Login page detection by titles, headings and URLs in many languages. Pure functions."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

_LOG_IN = (
    r"log[ -]?in|sign[ -]?in|log[ -]?on|sign[ -]?on|log[ -]?in / (?:register|sign up)|authentication required"
    # German, Dutch, Swedish, Danish, Norwegian, Finnish
    r"|anmelden|anmeldung|einloggen|inloggen|aanmelden|logga in|inloggning|log ind|logg (?:inn|på)|innlogging"
    r"|kirjaudu(?: sisään)?|kirjautuminen|sisäänkirjautuminen"
    # French, Spanish, Italian, Portuguese, Romanian
    r"|connexion|se connecter|connectez-vous|identifiez-vous|s['\u2019]identifier|identification|authentification"
    r"|inici(?:ar|a|e) (?:de )?sesi[oó]n|inicio de sesi[oó]n|acceder|iniciar sess[aã]o|identif[ií](?:cate|quese)"
    r"|accedi|effettua (?:il login|l['\u2019]accesso)|area riservata|entrar|fa[cç]a (?:o )?(?:seu )?login|acessar"
    r"|autentificare|conectare|autenticaci[oó]n|autentica[cç][aã]o|autenticazione"
    # Polish, Czech, Slovak, Hungarian, Turkish, Greek
    r"|zaloguj(?: się)?|logowanie|přihlášení|přihlásit(?: se)?|prihlásenie|prihlásiť sa|bejelentkezés|belépés"
    r"|giriş(?: yap(?:ın)?)?|oturum aç(?:ın|ma)?|üye girişi|kullanıcı girişi|σύνδεση|είσοδος"
    # Russian, Ukrainian, Bulgarian
    r"|вход|войти|вход в (?:личный кабинет|систему|аккаунт)|авторизация|вхід|увійти|авторизація|влизане"
    # Japanese, Chinese, Korean
    r"|(?:会員|ユーザー|メンバー)?(?:ログイン|サインイン)(?:画面|ページ)?|(?:用户|會員|会员|账号|帳號|密码|統一)?(?:登录|登入|登錄|登陆)"
    r"|(?:회원 ?)?로그인(?:하기)?"
    # Arabic, Persian, Hebrew, Hindi, Thai, Vietnamese, Indonesian
    r"|تسجيل الدخول|دخول الأعضاء|ورود(?: به (?:سایت|حساب کاربری))?|التحقق من الهوية|התחברות|כניסה|כניסה למערכת"
    r"|लॉग ?[इि]न(?: करें)?|साइन इन(?: करें)?|เข้าสู่ระบบ|đăng nhập|masuk"
)
_OWNERS = (
    r"members?(?:ship)?|users?|customers?|clients?|accounts?|admin(?:istrator)?s?|staff|students?|employees?|subscribers?"
    r"|partners?|patients?|portal|secure|existing|returning|online|my|web|author|reviewer|shibboleth|library|intranet"
    r"|kunden|mitglieder|benutzer|espace (?:client|membre|abonné)s?|clientes?|socios?|usuarios?|utenti|soci"
)
_WORDS_BEFORE = (
    rf"(?:(?:please|bitte|welcome(?: back)?[,!.]?(?: please)?|{_OWNERS}|you (?:must|need to)|jetzt|veuillez(?: vous)?)"
    r" ?-?)"
)
_WORDS_AFTER = (
    r"(?: (?:to|into|at|on|bei|beim) [^|]{1,40}| required| page|"
    r" (?:in|à|au|a|al|en|em|na|no|ao|do|w|в) (?:ihr|dein|mein|votre|ton|mon|su|tu|mi|sua|tua|seu|il tuo|свой)[^|]{1,30}|"
    r" form| here| now|(?: or| /| &| and|/) (?:register|sign[ -]?up|join|create (?:an )?account|registrieren)"
    r"| erforderlich| requis| w systemie)"
)
_LOGIN_TITLE = re.compile(rf"{_WORDS_BEFORE}{{0,2}}(?:{_LOG_IN}){_WORDS_AFTER}?[!.…: ]*", re.IGNORECASE)
_REGISTRATION_TITLE = re.compile(
    rf"(?:{_OWNERS})? ?(?:register|registration|sign[ -]?up|create (?:an? |your )?(?:new |free )?account|join(?: now| us)?"
    r"|registrier(?:en|ung)|konto (?:erstellen|anlegen)|inscription|s['\u2019]inscrire|créer un compte|registro"
    r"|regístrate|crear (?:una )?cuenta|registrati|registrazione|crea (?:un )?account|cadastr(?:o|e-se)|criar conta"
    r"|registreren|rejestracja|zarejestruj się|регистрация|kayıt ol|üye ol|新規登録|会員登録|注册|註冊|회원가입"
    r"|إنشاء حساب)"
    r"[!.: ]*",
    re.IGNORECASE,
)
_TITLE_SEPARATOR = re.compile(
    r"\s+[|\u2013\u2014\u00b7\u2022\u00bb\u00ab:>-]+\s+|\s*[|\u00b7\u2022\u00bb\u00ab:\uff5c]\s*"
)

# A path segment with little else than the word: "login", "member-login", "login.php"; not a slug that contains it.
_LOGIN_PATH = re.compile(
    r"(?:^|/)(?:[a-z]+[_.-]){0,1}"
    r"(?:log[-_]?[io]n|sign[-_]?[io]n|sso|oauth2?|authwall|authenticate|session/new|checkpoint|anmelden|anmeldung|einloggen"
    r"|connexion|se-connecter|iniciar-?sesion|inicio-?sesion|acceder|accedi|entrar|inloggen|logowanie|zaloguj|giris"
    r"|uye-?giris[i]?|logga-?in|kirjaudu|prihlaseni|prihlasenie|bejelentkezes|belepes|vhod|avtorizaciya|вход|войти"
    r"|ログイン|登录|登入|로그인)(?:[_.-][a-z]+){0,2}(?:/|$)",
    re.IGNORECASE,
)
_ACCOUNT_LOGIN_PATH = re.compile(
    r"(?:^|/)(?:my-?|mein-?|mon-?|mi-?|minha-?|mijn-?|moje-?)?"
    r"(?:accounts?|konto|compte|cuenta|conta|user|users|member|members|profile?|area-?riservata|espace-?(?:client|membre))"
    r"(?:[._-](?:html?|php\d?|aspx?|jsp|do|cgi|cfm))?(?:/(?:index\.\w+)?)?$",
    re.IGNORECASE,
)
_LOGIN_HOST = re.compile(r"^(?:login|signin|sso|accounts?|auth|idp|passport)\.", re.IGNORECASE)
_LOGIN_QUERY_VALUE = re.compile(
    r"(?:[a-z]+[_.-])?(?:log[-_]?in|sign[-_]?in|logon|signon|anmelden|connexion|inloggen)", re.IGNORECASE
)
_MAX_TITLE_CHARS = 150
_MAX_MENTION_CHARS = 10_000


def is_login_title(text: str) -> bool:
    """Return whether a title or heading, apart from the site's name, only names a login form.

    >>> is_login_title("Member login | Society of Engineers"), is_login_title("How to log in to Weft")
    (True, False)
    """
    return _has_part(_LOGIN_TITLE, text)


def is_registration_title(text: str) -> bool:
    """Return whether a title or heading only names a registration form."""
    return _has_part(_REGISTRATION_TITLE, text)


def _has_part(pattern: re.Pattern[str], text: str) -> bool:
    text = " ".join(text[: _MAX_TITLE_CHARS + 1].split())
    if len(text) > _MAX_TITLE_CHARS:
        return False
    parts = (text, *_TITLE_SEPARATOR.split(text))
    return any(pattern.fullmatch(part.strip()) is not None for part in parts)


def is_login_address(url: str) -> bool:
    """Return whether a URL is that of a login page, by its host, path or route.

    >>> is_login_address("https://a.com/#/login"), is_login_address("https://a.com/help#login")
    (True, False)
    """
    parts = urlsplit(url)
    route = parts.fragment.removeprefix("!")
    paths = (parts.path, route) if route.startswith("/") else (parts.path,)
    return any(_LOGIN_PATH.search(unquote(path)) for path in paths) or bool(_LOGIN_HOST.match(parts.hostname or ""))


def may_be_login_address(url: str) -> bool:
    """Return whether a URL may be that of a login page. Weaker: ``/account.html`` and ``?content=login`` count too."""
    parts = urlsplit(url)
    values = (value for _, value in parse_qsl(parts.query[:4096], keep_blank_values=False))
    in_query = any(_LOGIN_QUERY_VALUE.fullmatch(value) for value in values)
    return in_query or is_login_address(url) or _ACCOUNT_LOGIN_PATH.search(unquote(parts.path)) is not None


_ACCOUNT_WORDS = re.compile(
    r"passwor|password|passcode|account|\blog(?:ged)?[ -]?(?:in|on)|\bsign(?:ed)?[ -]?(?:in|up|on)|user ?name|e-?mail"
    r"|member|subscri|regist|cookie|privacy|terms of|support|welcome|free trial|demo"
    r"|passwort|kennwort|konto|anmeld|einlogg|benutzer|mitglied|abonn|wachtwoord|inlogg|gebruiker|lösenord|adgangskode|passord"
    r"|salasana|kirjau|mot de passe|compte|connect|connex|identifi|inscri|contraseñ|cuenta|sesión|usuari|regíst"
    r"|accedi|accesso|utente|iscri|senha|conta\b|entrar|hasło|logow|zalog|konta|heslo|přihl|účet|jelsz|fiók|şifre|giriş|hesap"
    r"|парол|аккаунт|войти|вход|регистр|учётн|учетн|κωδικ|σύνδεσ|λογαριασμ"
    r"|ログイン|パスワード|アカウント|会員|登录|登入|密码|密碼|账号|帳號|会员|로그인|비밀번호|계정|회원|كلمة المرور|تسجيل|حساب|पासवर्ड|लॉग",
    re.IGNORECASE,
)


def mentions_accounts(text: str) -> bool:
    """Return whether a text mentions accounts, passwords or registration, as login pages do.

    >>> mentions_accounts("Enter the password that we sent you."), mentions_accounts("The bridge is closed.")
    (True, False)
    """
    return _ACCOUNT_WORDS.search(text[:_MAX_MENTION_CHARS]) is not None
