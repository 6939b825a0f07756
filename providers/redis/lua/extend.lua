-- KEYS: the lock. ARGV: the holder, the time from now in ms. Returns until when.
if not held_by(redis.call('GET', KEYS[1]), ARGV[1]) then return 0 end
local free = server_time() + ARGV[2]
redis.call('PEXPIREAT', KEYS[1], free)
return free
