/**
 * Reads whole hashes into one string, which Redis packs in C: parsed one by one, the fields of learners cost several
 * times what is computed from them.
 * KEYS: hashes. ARGV: beyond this many fields and values no further hash is read, so that nobody waits long for Redis.
 * Result: MessagePack, for each of the first hashes, one or more, a list of its fields and values in turn.
 */
export const readHashesScript = `
local most, read, hashes = tonumber(ARGV[1]), 0, {}
for i = 1, #KEYS do
  hashes[i] = redis.call('HGETALL', KEYS[i])
  read = read + #hashes[i]
  if read >= most then break end
end
return cmsgpack.pack(hashes)
`;
