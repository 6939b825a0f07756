-- KEYS: the lock and, for fencing, its counter. ARGV: the holder, the time in ms.
local now = server_time()
local value, fence = redis.call('GET', KEYS[1]), 0
if not value then
	value = 'ADDED:' .. iso(now) .. '@' .. ARGV[1]
	local set = redis.pcall('SET', KEYS[1], value, 'NX', 'PXAT', now + ARGV[2])
	if set.err then -- a server before 6.2, or whatever the next line runs into too
		redis.call('SET', KEYS[1], value, 'NX', 'PX', ARGV[2])
	end
	if KEYS[2] then
		fence = redis.pcall('INCR', KEYS[2])
		if type(fence) == 'table' then -- an error; nothing is undone by itself
			redis.call('DEL', KEYS[1])
			return fence
		end
	end
else
	-- It changes nothing, because the key exists. But on a replica, or without the
	-- right to write, it is an error, where the value may be an old one.
	redis.call('SET', KEYS[1], '', 'NX', 'PX', 1)
	if KEYS[2] and held_by(value, ARGV[1]) then
		fence = tonumber(redis.call('GET', KEYS[2]) or 0)
	end
end
return {value, ends(KEYS[1], now), now, fence}
