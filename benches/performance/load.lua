-- Sends a request for each line of LINES, from the top again at the end unless ONCE, and counts as good what is
-- answered with 200 or 201 and holds MARKER. A line is the body, or the value of the header that HEADER names. With
-- QUEUE, lines are bodies of refreshes: each is used once, and the answer's refresh token makes another.
-- It wants wrk to have one thread.
local env = os.getenv
local thread

function setup(it) thread = it end

function init()
  lines, first, last = {}, 1, 0
  for line in io.lines(env("LINES")) do
    last = last + 1
    lines[last] = line
  end
  count, once, queue = last, env("ONCE") == "1", env("QUEUE") == "1"
  method, path, header, marker = env("METHOD"), env("TARGET"), env("HEADER"), env("MARKER")
  issued, good, dry, bad = -1, 0, 0, ""
end

local function take()
  if queue or once then
    local line = lines[first]
    if not line then
      dry = dry + 1
      return ""
    end
    if queue then lines[first] = nil end
    first = first + 1
    return line
  end
  return lines[(issued - 1) % count + 1]
end

function request()
  issued = issued + 1
  -- wrk asks once before the run, to see what a request looks like.
  if issued == 0 then return wrk.format(method, path, {}, "") end
  local line = take()
  if header ~= "" then return wrk.format(method, path, {[header] = line}) end
  return wrk.format(method, path, {["Content-Type"] = "application/json"}, line)
end

function response(status, _, body)
  if (status == 200 or status == 201) and body:find(marker, 1, true) then
    good = good + 1
  elseif bad == "" then
    bad = status .. " " .. body:sub(1, 200)
  end
  local token = queue and body:match('"refresh_token":"([^"]+)"')
  if token then
    last = last + 1
    lines[last] = '{"refresh_token":"' .. token .. '"}'
  end
end

function done(summary, latency)
  if thread:get("queue") then
    -- The next load goes on with them.
    local file, rest = assert(io.open(env("LINES"), "w")), thread:get("lines")
    for place = thread:get("first"), thread:get("last") do file:write(rest[place], "\n") end
    file:close()
  end
  local errors = summary.errors
  io.write(string.format(
    '\nJSON {"issued":%d,"good":%d,"answered":%d,"dry":%d,"socket_errors":%d,"seconds":%f,"p50_ms":%f,"p99_ms":%f,"bad":"%s"}\n',
    thread:get("issued"), thread:get("good"), summary.requests, thread:get("dry"),
    errors.connect + errors.read + errors.write + errors.timeout, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, (thread:get("bad"):gsub('[%c"\\]', "'"))))
end
