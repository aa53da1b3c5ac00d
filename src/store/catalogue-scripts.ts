/** The Lua script of catalogues. */

/**
 * Writes skills of one tenant; each stands alone.
 * KEYS: the tenant's skills, the marks of all tenants, the catalogues' journal.
 * ARGV: tenant; Unix milliseconds; most skills of a tenant; most entries of the journal; then for each skill its id,
 *   the revisions it may replace, each between spaces ('': any; 0: never set), the value after `updatedAt` and the
 *   row after it.
 * Result: for each skill its value now, or why it was not written: `mismatch`, `full` (the tenant), `journal` (full).
 */
export const putSkillsScript = `
local tenant, now = ARGV[1], ARGV[2]
local room = tonumber(ARGV[3]) - redis.call('HLEN', KEYS[1])
local journalRoom = tonumber(ARGV[4]) - redis.call('XLEN', KEYS[3])
local mark = redis.call('HGET', KEYS[2], tenant) or '0 0'
local before = tonumber(string.match(mark, '^%d+'))
-- Clocks of processes differ: a later change never has an earlier time.
if tonumber(now) < tonumber(string.match(mark, '%d+$')) then now = string.match(mark, '%d+$') end
local revision = before
local function put(skill, expected, rest, row)
  local stored = redis.call('HGET', KEYS[1], skill)
  local current = stored and string.match(stored, '"revision":(%d+)') or '0'
  if expected ~= '' and not string.find(expected, ' ' .. current .. ' ', 1, true) then return 'mismatch' end
  if not stored and room <= 0 then return 'full' end
  if journalRoom <= 0 then return 'journal' end
  if not stored then room = room - 1 end
  journalRoom = journalRoom - 1
  revision = revision + 1
  local value = '{"v":1,"revision":' .. string.format('%.0f', revision) .. ',"updatedAt":' .. now .. ',' .. rest
  redis.call('HSET', KEYS[1], skill, value)
  redis.call('XADD', KEYS[3], '*', 'k', 'skill', 'r', string.format('%.0f', revision) .. '\\t' .. now .. '\\t' .. row)
  return value
end
local results = {}
for i = 5, #ARGV, 4 do
  results[#results + 1] = put(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
if revision > before then redis.call('HSET', KEYS[2], tenant, string.format('%.0f', revision) .. ' ' .. now) end
return results
`;
