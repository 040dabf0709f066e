// Improves what works without it: times in the browser's zone, copy buttons, keys.
"use strict";
const parts = { year: "numeric", month: "2-digit", day: "2-digit" };
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" };
// Staff who have chosen no zone read times in the browser's.
for (const time of document.querySelectorAll("body[data-local-times] time")) {
  // A day without a time is the same everywhere.
  if (time.dateTime.length === 10) continue;
  const shown = time.title || time.textContent;
  const day = shown.length === 10;
  const options = { ...parts, ...(day ? {} : clock), ...(/:\d\d:\d\d/.test(shown) ? { second: "2-digit" } : {}) };
  const text = Object.fromEntries(
    new Intl.DateTimeFormat("en", options).formatToParts(new Date(time.dateTime)).map((part) => [part.type, part.value]),
  );
  const hours = [text.hour, text.minute, text.second].filter(Boolean).join(":");
  const local = `${text.year}-${text.month}-${text.day}` + (day ? "" : ` ${hours} ${text.timeZoneName}`);
  // A clock time beneath a heading for a UTC day names its own day where that differs.
  if (/^\d\d:\d\d$/.test(time.textContent)) {
    const here = new Date(time.dateTime);
    const other = here.getDate() === here.getUTCDate() ? "" : `, ${here.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}`;
    time.textContent = `${text.hour}:${text.minute}${other}`;
  }
  if (time.title) time.title = local;
  else time.textContent = local;
}

// A copy button behind each id, e-mail and key. Without the script they select as a whole with one click.
for (const text of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  const show = (icon, words) => {
    button.innerHTML = `<svg class="icon" aria-hidden="true"><use href="/admin/icons.svg#${icon}"/></svg>`;
    button.setAttribute("aria-label", `${words} ${text.textContent}`);
    button.classList.toggle("done", icon === "check");
  };
  show("copy", "Copy");
  button.title = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      show("check", "Copied");
      setTimeout(show, 1500, "copy", "Copy");
    } catch {
      getSelection().selectAllChildren(text);
    }
  });
  text.after(button);
}

const find = document.querySelector("#q");
if (find) {
  const hint = document.createElement("kbd");
  hint.textContent = "/";
  hint.setAttribute("aria-hidden", "true");
  if (!find.value) find.after(hint);
}
const open = () => document.querySelector(".menu[open]");
const close = (menu, focus) => {
  menu.open = false;
  if (focus) menu.querySelector("summary").focus();
};
document.addEventListener("click", (event) => {
  const menu = open();
  if (menu && !menu.contains(event.target)) close(menu, false);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && open()) close(open(), true);
  else if (event.key === "Escape" && typing === find) find.blur();
  else if (find && ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey)))) {
    event.preventDefault();
    find.focus();
    find.select();
  }
});
