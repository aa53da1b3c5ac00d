/** The Lua script of goals: one atomic verb for setting and taking away. */

/**
 * Writes a learner's goal. One that is taken away leaves its time behind, so that no later change has the same.
 * KEYS: the learner's hash, the partition's marker, the partition's journal.
 * ARGV: tags it may replace, each between spaces, `*` for any, or '' for no condition; 1 where there must be a goal;
 *   Unix milliseconds; the value after `updatedAt`; the row after it; most entries of the journal.
 * Result: what became of it, and the value now: `written`, `mismatch`, `absent` (no goal where there must be one),
 *   `emptied` (Redis came back empty), `full` (the journal).
 */
export const writeGoalScript = `
-- First of all: an emptied Redis cannot tell whether there is a goal.
if redis.call('EXISTS', KEYS[2]) == 0 then return { 'emptied', '' } end
local stored = redis.call('HGET', KEYS[1], 'G')
local present = stored and not string.find(stored, '"targetScore":null', 1, true)
if ARGV[2] == '1' and not present then return { 'absent', '' } end
if ARGV[1] ~= '' then
  local tag = present and redis.sha1hex(stored)
  if not tag or not (ARGV[1] == '*' or string.find(ARGV[1], ' ' .. tag .. ' ', 1, true)) then
    return { 'mismatch', '' }
  end
end
if redis.call('XLEN', KEYS[3]) >= tonumber(ARGV[6]) then return { 'full', '' } end
local previous = stored and tonumber(string.match(stored, '"updatedAt":(%d+)')) or 0
local updatedAt = string.format('%.0f', math.max(tonumber(ARGV[3]), previous + 1))
local value = '{"v":1,"updatedAt":' .. updatedAt .. ',' .. ARGV[4]
redis.call('HSET', KEYS[1], 'G', value)
redis.call('XADD', KEYS[3], '*', 'k', 'goal', 'r', updatedAt .. '\\t' .. ARGV[5])
return { 'written', value }
`;
