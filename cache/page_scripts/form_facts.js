// Facts that distinguish login forms from other forms. Read-only.
(squeeze) => {
  const MAX_FORM_CHARS = 1000, MAX_NEAR_CHARS = 400, MOST = 0.8;
  const USER = /user|log-?in|e-?mail|account|identifier|member|customer|kunde|benutzer|utilisateur|identifiant|usuario|utente|gebruiker|u[zż]ytkownik|логин|почт|kullan[ıi]c|メール|ユーザー|用户|用戶|账号|帳號|아이디|이메일|المستخدم|البريد/i;
  // Length of an element's visible text. Of a list, only the selected option is visible.
  const visibleChars = (el) => [...el.querySelectorAll("select")].reduce(
    (sum, list) => sum - squeeze(list.innerText || "").length + ((list.selectedOptions || [])[0] || { text: "" }).text.length,
    squeeze(el.innerText || "").length);
  // Length of the text of the form around a field. A form around most of the page, as ASP.NET generates it, does not
  // count; then the text near the field counts.
  const formChars = (el) => {
    const form = el.form || el.closest("form");
    const inForm = form ? visibleChars(form) : Infinity;
    const isPage = inForm > MAX_FORM_CHARS || (inForm > MAX_NEAR_CHARS && inForm >= MOST * visibleChars(document.body));
    if (!isPage) return inForm;
    let chars = 0;
    for (let at = el.parentElement; at && at !== document.body && at !== form; at = at.parentElement) {
      const more = visibleChars(at);
      if (more > MAX_NEAR_CHARS) break;
      chars = more;
    }
    return chars;
  };
  const asksForNewPassword = (el) => {
    const group = el.form || document;
    const shown = [...group.querySelectorAll("input[type=password]")].filter((other) => other.checkVisibility());
    return /new-password/.test(el.autocomplete || "") || (shown.length > 1 && !shown.some((other) => /current-password/.test(other.autocomplete || "")));
  };
  const isUserField = (el) => {
    const said = [el.name, el.id, el.placeholder, el.getAttribute("aria-label"), ...[...(el.labels || [])].map((label) => label.innerText)].join(" ");
    const form = el.form ? `${el.form.id} ${el.form.getAttribute("class") || ""} ${(el.form.innerText || "").slice(0, 500)}` : "";
    return (/username|email/.test(el.autocomplete || "") || USER.test(said)) && !/newsletter|subscri|abonn/i.test(form);
  };
  return { formChars, asksForNewPassword, isUserField };
}
