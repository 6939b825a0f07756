-- Before each script. Times are milliseconds since 1970, by the server's clock.
-- A lock's value is ADDED:<ISO-8601 time, UTC, ms>@<holder>, as ShedLock writes it.
local function server_time()
	local t = redis.call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- The days from 1970 to the first of January.
local function days_before(year)
	local y = year - 1
	return 365 * (year - 1970) + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400) - 477
end

local function months(year)
	local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
	return {31, leap and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
end

local function iso(ms)
	local days = math.floor(ms / 86400000)
	local year = 1970 + math.floor(days / 365.2425)
	if days_before(year) > days then
		year = year - 1
	elseif days_before(year + 1) <= days then
		year = year + 1
	end
	local day = days - days_before(year)
	local month = 1
	for _, length in ipairs(months(year)) do
		if day < length then break end
		day, month = day - length, month + 1
	end
	local rest = ms - days * 86400000
	return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day + 1,
		math.floor(rest / 3600000), math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
end

-- When a lock was acquired; nil if the value is of another form.
local function added(value)
	local year, month, day, hour, minute, second, ms =
		string.match(value, '^ADDED:(%d%d%d%d)-(%d%d)-(%d%d)T(%d%d):(%d%d):(%d%d)%.(%d%d%d)Z@')
	if not year then return nil end
	local days = days_before(tonumber(year)) + day - 1
	for m, length in ipairs(months(tonumber(year))) do
		if m < tonumber(month) then days = days + length end
	end
	return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms
end

local function held_by(value, holder)
	return value and added(value) and string.sub(value, 32) == holder
end

-- When a key expires; negative if never or if there is none.
local function ends(key, now)
	local at = redis.pcall('PEXPIRETIME', key)
	if type(at) == 'number' then return at end
	local left = redis.call('PTTL', key) -- a server before 7.0, to the millisecond
	return left < 0 and left or now + left
end
