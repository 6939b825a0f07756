-- KEYS: the lock. ARGV: the holder, the minimum hold in ms.
local value = redis.call('GET', KEYS[1])
if not held_by(value, ARGV[1]) then return 0 end
local free = added(value) + ARGV[2]
if free > server_time() then
	redis.call('PEXPIREAT', KEYS[1], free)
else
	redis.call('DEL', KEYS[1])
end
return 1
