import { Type } from 'typebox';
import { encodeSkillRow } from '../../contracts/journal/journal.js';
import { StoredParameters } from '../../contracts/models/stored-model.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import {
  buildCatalogue,
  type Catalogue,
  defaultSkillSetting,
  type SkillEntry,
  type SkillSetting,
} from '../../domain/catalogue/catalogue.js';
import { unavailable } from '../../errors.js';
import { distinct, splitIntoParts } from '../../lists.js';
import { readHash } from '../redis/commands/bulk-operations.js';
import { defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import {
  catalogueChangesKey,
  catalogueJournalKey,
  catalogueKey,
  catalogueRevisionsKey,
  maxJournalEntries,
  metaKey,
  rareSkillsKey,
  registeredSkillsKey,
  timeZonesKey,
} from '../redis/keys.js';
import { findExcessSkills, registerSkills } from './registered-skills.js';

export interface SkillWrite {
  readonly skillId: string;
  /** Null removes the skill. */
  readonly setting: SkillSetting | null;
  /** Accepted revisions (0: not set yet); null: any. */
  readonly ifRevision: readonly string[] | null;
}

/** `full`: the tenant has the maximum number of skills. */
export type SkillWriteResult =
  | { readonly status: 'written'; readonly entry: SkillEntry }
  | { readonly status: 'mismatch' | 'full' | 'removed' };

const parseEntry = createStoredParser(
  Type.Object({
    v: Type.Literal(1),
    revision: Type.Integer({ minimum: 1 }),
    updatedAt: Type.Integer({ minimum: 0 }),
    name: Type.Union([Type.String(), Type.Null()]),
    section: Type.Union([Type.Literal('math'), Type.Literal('rw'), Type.Null()]),
    weight: Type.Number({ exclusiveMinimum: 0 }),
    parameters: Type.Union([StoredParameters, Type.Null()]),
  }),
  'a stored skill',
);

function decodeEntry(value: string): SkillEntry {
  const { v: _, ...entry } = parseEntry(value);
  return entry;
}

const encodeSetting = ({ name, section, weight, parameters }: SkillSetting): string =>
  JSON.stringify({ name, section, weight, parameters }).slice(1);

/** A reader that missed more changes loads the whole catalogue. */
export const maxListedChanges = 1000;

/**
 * Writes each skill independently. KEYS: the tenant's skills, marks of all tenants, journal, the tenant's
 * changes. Texts per skill: id; accepted revisions between spaces ('': any); JSON after `updatedAt` ('':
 * remove); journal row after the time. Result per skill: new value, '' if removed, `mismatch`, or `journal`
 * (full).
 */
const writeSkillsScript = defineScript(4)<
  [...keys: [string, string, string, string], tenant: string, now: number, maxJournal: number, ...string[]],
  string[]
>(`
local tenant, now = ARGV[1], ARGV[2]
local journalRoom = tonumber(ARGV[3]) - redis.call('XLEN', KEYS[3])
local before, last, zone = string.match(redis.call('HGET', KEYS[2], tenant) or '0 0', '^(%d+) (%d+)(.*)$')
before = tonumber(before)
-- Process clocks differ, but the times of changes never decrease.
if tonumber(now) < tonumber(last) then now = last end
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
  redis.call('HSET', KEYS[2], tenant, string.format('%.0f', revision) .. ' ' .. now .. zone)
  redis.call('LTRIM', KEYS[4], 0, ${maxListedChanges} - 1)
end
return results
`);

/**
 * KEYS: marks of all tenants, the tenant's skills and changes. Result: current mark, then id and value ('':
 * removed) of each change. Empty after too many changes, or if Redis lost the mark.
 */
const readChangesScript = defineScript(3)<
  [...keys: [string, string, string], tenant: string, mark: string],
  string[]
>(`
local mark, since = redis.call('HGET', KEYS[1], ARGV[1]) or '', string.match(ARGV[2], '^%d+ %d+') or ''
local result, seen = { mark }, {}
if mark == ARGV[2] then return result end
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
`);

/**
 * Change count, time and the tenant's time zone (none: UTC). A Redis that lost its last second repeats counts.
 * '': no change.
 */
export const fetchCatalogueMark = async (client: RedisClient, tenant: string): Promise<string> =>
  (await mapRedisErrors(client.hget(catalogueRevisionsKey, tenant))) ?? '';

/** The caller must then write the tenant's mark. */
export async function storeCatalogueEntries(
  client: RedisClient,
  tenant: string,
  entries: readonly (SkillEntry & { readonly skillId: string })[],
): Promise<void> {
  const fields = entries.flatMap(({ skillId, revision, updatedAt, ...setting }) => [
    skillId,
    `{"v":1,"revision":${revision},"updatedAt":${updatedAt},${encodeSetting(setting)}`,
  ]);
  await mapRedisErrors(client.hset(catalogueKey(tenant), ...fields));
}

/** With the time zone. Not journaled: the caller also removes the stored rows. */
export async function removeCatalogue(client: RedisClient, tenant: string): Promise<void> {
  await mapRedisErrors(client.unlink(catalogueKey(tenant), catalogueChangesKey(tenant)));
  for (const key of [catalogueRevisionsKey, timeZonesKey]) await mapRedisErrors(client.hdel(key, tenant));
  await mapRedisErrors(client.unlink(rareSkillsKey(tenant), registeredSkillsKey(tenant)));
}

export interface CatalogueSnapshot {
  readonly mark: string;
  readonly catalogue: Catalogue;
}

const maxReadAttempts = 5;

/** @param previous entries are changed in place: copying a large catalogue takes 15 ms */
export async function readCatalogue(
  client: RedisClient,
  tenant: string,
  previous: CatalogueSnapshot | null = null,
): Promise<CatalogueSnapshot> {
  const updated = previous && (await applyChanges(client, tenant, previous.mark, previous.catalogue.entries));
  if (updated !== null) return updated;
  for (let tries = 0; tries < maxReadAttempts; tries++) {
    const mark = await fetchCatalogueMark(client, tenant);
    const entries = await readHash(client, catalogueKey(tenant), (_, text) => decodeEntry(text));
    const snapshot = await applyChanges(client, tenant, mark, entries);
    if (snapshot !== null) return snapshot;
  }
  throw unavailable('The skill catalogue of this tenant is changing too fast; retry later.');
}

/** @param entries as of `since` or later @returns null if the changes are unknown */
async function applyChanges(
  client: RedisClient,
  tenant: string,
  since: string,
  entries: Catalogue['entries'],
): Promise<CatalogueSnapshot | null> {
  const keys = [catalogueRevisionsKey, catalogueKey(tenant), catalogueChangesKey(tenant)] as const;
  const [mark, ...changes] = await readChangesScript(client, ...keys, tenant, since);
  if (mark === undefined) return null;
  // Decode first: an unreadable entry leaves the catalogue unchanged.
  const decoded = splitIntoParts(changes, 2).map(([skillId = '', value = '']) => {
    return [skillId, value === '' ? null : decodeEntry(value)] as const;
  });
  const all = entries as Map<string, SkillEntry>;
  for (const [skillId, entry] of decoded) {
    if (entry === null) all.delete(skillId);
    else all.set(skillId, entry);
  }
  const [revision, , timeZone] = mark.split(' ');
  return { mark, catalogue: buildCatalogue(Number(revision), all, timeZone) };
}

const skillsPerCall = 200;

/**
 * If the process dies, written skills may stay unregistered until they are answered or written again.
 * Concurrent calls may exceed the limit.
 * @throws ApiError UNAVAILABLE, also if Redis is empty or the journal full. Some skills may be written.
 */
export async function writeSkills(
  client: RedisClient,
  tenant: string,
  writes: readonly SkillWrite[],
  now: number,
  { knownSkills, journal = maxJournalEntries }: { readonly knownSkills: number; readonly journal?: number },
): Promise<SkillWriteResult[]> {
  if ((await mapRedisErrors(client.exists(metaKey))) === 0)
    throw unavailable('Learner state was lost and is not rebuilt yet; retry later.');
  const results: SkillWriteResult[] = [];
  for (const chunk of splitIntoParts(writes, skillsPerCall)) {
    const setIds = collectSkillIds(chunk.filter(({ setting }) => setting !== null));
    const rejected =
      setIds.length === 0 ? [] : (await findExcessSkills(client, tenant, setIds, knownSkills)).excess;
    const accepted = chunk.filter(({ skillId }) => !rejected.includes(skillId));
    const values = accepted.length === 0 ? [] : await executeWrites(client, tenant, accepted, now, journal);
    await registerSkills(
      client,
      tenant,
      collectSkillIds(accepted.filter((_, i) => values[i]?.startsWith('{'))),
    );
    results.push(...chunk.map((write) => parseWriteResult(values[accepted.indexOf(write)] ?? 'full')));
  }
  return results;
}

const collectSkillIds = (writes: readonly SkillWrite[]): string[] =>
  distinct(writes.map(({ skillId }) => skillId));

function executeWrites(
  client: RedisClient,
  tenant: string,
  writes: readonly SkillWrite[],
  now: number,
  maxJournal: number,
): Promise<string[]> {
  const skills = writes.flatMap(({ skillId, setting, ifRevision }) => [
    skillId,
    ifRevision === null ? '' : ` ${ifRevision.join(' ')} `,
    setting === null ? '' : encodeSetting(setting),
    encodeSkillRow({ tenant, skillId, ...(setting ?? removedSkill) }),
  ]);
  const [values, changes] = [catalogueKey(tenant), catalogueChangesKey(tenant)];
  const keys = [values, catalogueRevisionsKey, catalogueJournalKey, changes] as const;
  return withReplication(client, catalogueRevisionsKey, () =>
    writeSkillsScript(client, ...keys, tenant, now, maxJournal, ...skills),
  );
}

/** Weight 0 marks a removed skill in ClickHouse. */
const removedSkill: SkillSetting = { ...defaultSkillSetting, weight: 0 };

function parseWriteResult(result: string): SkillWriteResult {
  if (result === 'mismatch' || result === 'full') return { status: result };
  if (result === '') return { status: 'removed' };
  if (result === 'journal') throw unavailable('Too many changes are waiting for ClickHouse; retry later.');
  return { status: 'written', entry: decodeEntry(result) };
}
