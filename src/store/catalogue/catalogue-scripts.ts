/** The Lua scripts of catalogues. */

/** Changes that are kept beside a catalogue: who saw it before more than so many reads it whole. */
const keptChanges = 1000;

/**
 * Writes skills of one tenant; each stands alone.
 * KEYS: the tenant's skills, the marks of all tenants, the catalogues' journal, the tenant's changes.
 * ARGV: tenant; Unix milliseconds; most entries of the journal; then for each skill its id, the revisions it may
 *   replace, each between spaces ('': any; 0: never set), the value after `updatedAt` ('': it is taken off) and the row
 *   after it.
 * Result: for each skill its value now, '' where it is taken off, or why it was not written: `mismatch`, `journal` (full).
 */
export const putSkillsScript = `
local tenant, now = ARGV[1], ARGV[2]
local journalRoom = tonumber(ARGV[3]) - redis.call('XLEN', KEYS[3])
local mark = redis.call('HGET', KEYS[2], tenant) or '0 0'
local before = tonumber(string.match(mark, '^%d+'))
-- Clocks of processes differ: a later change never has an earlier time.
if tonumber(now) < tonumber(string.match(mark, '%d+$')) then now = string.match(mark, '%d+$') end
local revision = before
local function put(skill, expected, rest, row)
  local stored = redis.call('HGET', KEYS[1], skill)
  local current = stored and string.match(stored, '"revision":(%d+)') or '0'
  if expected ~= '' and not string.find(expected, ' ' .. current .. ' ', 1, true) then return 'mismatch' end
  if not stored and rest == '' then return '' end
  if journalRoom <= 0 then return 'journal' end
  journalRoom = journalRoom - 1
  revision = revision + 1
  local number = string.format('%.0f', revision)
  local value = rest ~= '' and '{"v":1,"revision":' .. number .. ',"updatedAt":' .. now .. ',' .. rest or ''
  if value == '' then redis.call('HDEL', KEYS[1], skill) else redis.call('HSET', KEYS[1], skill, value) end
  redis.call('LPUSH', KEYS[4], number .. ' ' .. now .. ' ' .. skill)
  redis.call('XADD', KEYS[3], '*', 'k', 'skill', 'r', number .. '\\t' .. now .. '\\t' .. row)
  return value
end
local results = {}
for i = 4, #ARGV, 4 do
  results[#results + 1] = put(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
if revision > before then
  redis.call('HSET', KEYS[2], tenant, string.format('%.0f', revision) .. ' ' .. now)
  redis.call('LTRIM', KEYS[4], 0, ${keptChanges} - 1)
end
return results
`;

/**
 * What changed since a mark.
 * KEYS: the marks of all tenants, the tenant's skills, its changes. ARGV: tenant, mark.
 * Result: the mark now, then each skill that changed since and its value ('': taken off). Nothing at all where that is not
 *   known any more: too much changed, or the mark is one that Redis lost.
 */
export const catalogueSinceScript = `
local mark, since = redis.call('HGET', KEYS[1], ARGV[1]) or '', ARGV[2]
local result, seen = { mark }, {}
if mark == since then return result end
for _, change in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  if since ~= '' and string.sub(change, 1, #since + 1) == since .. ' ' then return result end
  local skill = string.match(change, '^%d+ %d+ (.*)$')
  if not seen[skill] then
    seen[skill] = true
    result[#result + 1] = skill
    result[#result + 1] = redis.call('HGET', KEYS[2], skill) or ''
  end
end
return {}
`;
