/**
 * Appends to a stream of the journal as far as there is room.
 * KEYS: the stream. ARGV: most entries that it may hold, kind, then rows.
 * Result: number of rows for which there was no room.
 */
export const appendJournalScript = `
local rows = #ARGV - 2
local room = math.max(0, tonumber(ARGV[1]) - redis.call('XLEN', KEYS[1]))
local kept = math.min(room, rows)
for i = 3, 2 + kept do redis.call('XADD', KEYS[1], '*', 'k', ARGV[2], 'r', ARGV[i]) end
return rows - kept
`;
