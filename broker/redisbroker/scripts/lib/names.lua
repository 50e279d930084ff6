-- names: short names for what all scripts call.
local call, pcall_, sub, find, byte, fmt = redis.call, redis.pcall, string.sub, string.find, string.byte, string.format
local floor = math.floor
