// Shows times in the browser's zone to whoever has chosen none. Without it they are in UTC.
"use strict";
for (const time of document.querySelectorAll("time")) {
  const when = new Date(time.dateTime);
  const day = time.textContent.length === 10;
  const parts = { year: "numeric", month: "2-digit", day: "2-digit" };
  if (!day) Object.assign(parts, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" });
  if (/:\d\d:\d\d/.test(time.textContent)) parts.second = "2-digit";
  const text = Object.fromEntries(
    new Intl.DateTimeFormat("en", parts).formatToParts(when).map((part) => [part.type, part.value]),
  );
  const clock = [text.hour, text.minute, text.second].filter(Boolean).join(":");
  time.textContent = `${text.year}-${text.month}-${text.day}` + (day ? "" : ` ${clock} ${text.timeZoneName}`);
}
