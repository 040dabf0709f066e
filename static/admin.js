// Shows times in the browser's zone to whoever has chosen none. Without it they are in UTC.
"use strict";
for (const time of document.querySelectorAll("time")) {
  // A day without a time is the same everywhere.
  if (time.dateTime.length === 10) continue;
  const when = new Date(time.dateTime);
  const shown = time.title || time.textContent;
  const day = shown.length === 10;
  const parts = { year: "numeric", month: "2-digit", day: "2-digit" };
  if (!day) Object.assign(parts, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" });
  if (/:\d\d:\d\d/.test(shown)) parts.second = "2-digit";
  const text = Object.fromEntries(
    new Intl.DateTimeFormat("en", parts).formatToParts(when).map((part) => [part.type, part.value]),
  );
  const clock = [text.hour, text.minute, text.second].filter(Boolean).join(":");
  const local = `${text.year}-${text.month}-${text.day}` + (day ? "" : ` ${clock} ${text.timeZoneName}`);
  if (time.title) time.title = local;
  else time.textContent = local;
}
