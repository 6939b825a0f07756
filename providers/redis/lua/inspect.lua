-- KEYS: the lock and, for fencing, its counter. It answers like acquire.lua.
local now = server_time()
local fence = 0
if KEYS[2] then fence = tonumber(redis.call('GET', KEYS[2]) or 0) end
return {redis.call('GET', KEYS[1]), ends(KEYS[1], now), now, fence}
