/** Catalogues: what tenants have set of their skills. */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { skillRow } from '../../contracts/journal.js';
import { type Catalogue, catalogueOf, type SkillEntry } from '../../domain/catalogue/catalogue.js';
import { type SkillSetting, unsetSkill } from '../../domain/catalogue/skill-setting.js';
import { unavailable } from '../../errors.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import {
  catalogueChangesKey,
  catalogueJournalKey,
  catalogueKey,
  catalogueRevisionsKey,
  journalBound,
  metaKey,
} from '../redis/keys.js';
import { replicated } from '../redis/replication.js';
import { catalogueSinceScript, putSkillsScript } from './catalogue-scripts.js';
import { addKnownSkills, unknownBeyond } from './known-skills.js';

/** One skill of a catalogue as it is to be. */
export interface SkillWrite {
  readonly skillId: string;
  /** Null: it is taken off the catalogue. */
  readonly setting: SkillSetting | null;
  /** Revisions of the entry, as text, that it may replace (0: none yet); null: any. */
  readonly ifRevision: readonly string[] | null;
}

/** `full`: the tenant knows as many skills as it may; `removed`: it is not in the catalogue any more. */
export type SkillWritten =
  | { readonly status: 'written'; readonly entry: SkillEntry }
  | { readonly status: 'mismatch' | 'full' | 'removed' };

/** Skills of one script call: it must not hold Redis up. */
const chunkSkills = 200;

const Probability = Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 });
const Stored = Type.Object({
  v: Type.Literal(1),
  revision: Type.Integer({ minimum: 1 }),
  updatedAt: Type.Integer({ minimum: 0 }),
  name: Type.Union([Type.String(), Type.Null()]),
  section: Type.Union([Type.Literal('math'), Type.Literal('rw'), Type.Null()]),
  weight: Type.Number({ exclusiveMinimum: 0 }),
  parameters: Type.Union([
    Type.Object({ pInit: Probability, pLearn: Probability, pGuess: Probability, pSlip: Probability }),
    Type.Null(),
  ]),
});
const storedCheck = Compile(Stored);

/** @throws Error for an entry that this version of the service cannot read */
function decodeEntry(value: string): SkillEntry {
  const stored: unknown = JSON.parse(value);
  if (!storedCheck.Check(stored))
    throw new Error('a stored entry of a catalogue is not known to this version');
  const { v: _, ...entry } = stored;
  return entry;
}

/** The entry after revision and time, which the script decides. */
const encodeSetting = ({ name, section, weight, parameters }: SkillSetting): string =>
  JSON.stringify({ name, section, weight, parameters }).slice(1);

/**
 * Mark of the tenant's catalogue, another one after every change; '' before the first. It has the number of changes
 * and the time, for a Redis that lost its last second counts the same numbers again.
 */
export const catalogueMark = async (client: RedisClient, tenant: string): Promise<string> =>
  (await whileRedisServes(client.hget(catalogueRevisionsKey, tenant))) ?? '';

/** Puts entries back as they were; the tenant's mark is for the caller to put behind them. */
export async function putCatalogueEntries(
  client: RedisClient,
  tenant: string,
  entries: readonly (SkillEntry & { readonly skillId: string })[],
): Promise<void> {
  const fields = entries.flatMap(({ skillId, revision, updatedAt, ...setting }) => [
    skillId,
    `{"v":1,"revision":${revision},"updatedAt":${updatedAt},${encodeSetting(setting)}`,
  ]);
  await whileRedisServes(client.hset(catalogueKey(tenant), ...fields));
}

export interface MarkedCatalogue {
  readonly mark: string;
  readonly catalogue: Catalogue;
}

/** Fields of one HSCAN, which holds Redis up no longer than a batch of answers does. */
const scanned = 500;
const maxTries = 5;

/**
 * The catalogue as of one moment: what changed since it was read before, where that is known; else all of it, a page at a
 * time.
 *
 * @param before its entries are changed in place: to copy those of a large catalogue with each change takes 15 ms
 * @throws Error for an entry that this version of the service cannot read; ApiError UNAVAILABLE
 */
export async function readCatalogue(
  client: RedisClient,
  tenant: string,
  before: MarkedCatalogue | null = null,
): Promise<MarkedCatalogue> {
  const changed = before && (await changedSince(client, tenant, before.mark, before.catalogue.entries));
  if (changed !== null) return changed;
  for (let tries = 0; tries < maxTries; tries++) {
    const mark = await catalogueMark(client, tenant);
    const whole = await changedSince(client, tenant, mark, await scanEntries(client, tenant));
    if (whole !== null) return whole;
  }
  throw unavailable('The catalogue of this tenant is changing too fast; try again later');
}

async function scanEntries(client: RedisClient, tenant: string): Promise<Catalogue['entries']> {
  const entries = new Map<string, SkillEntry>();
  let cursor = '0';
  do {
    const page = client.hscan(catalogueKey(tenant), cursor, 'COUNT', scanned);
    const [next, fields] = await whileRedisServes(page);
    for (let i = 0; i < fields.length; i += 2)
      entries.set(fields[i] as string, decodeEntry(fields[i + 1] as string));
    cursor = next;
  } while (cursor !== '0');
  return entries;
}

/** @param entries as of the mark, perhaps with later ones. @returns null where it is not known what changed since */
async function changedSince(
  client: RedisClient,
  tenant: string,
  since: string,
  entries: Catalogue['entries'],
): Promise<MarkedCatalogue | null> {
  const keys = [catalogueRevisionsKey, catalogueKey(tenant), catalogueChangesKey(tenant)];
  const reply = client.eval(catalogueSinceScript, keys.length, ...keys, tenant, since);
  const [mark, ...changes] = (await whileRedisServes(reply)) as string[];
  if (mark === undefined) return null;
  const decoded: [skillId: string, entry: SkillEntry | null][] = [];
  for (let i = 0; i < changes.length; i += 2) {
    const value = changes[i + 1] as string;
    decoded.push([changes[i] as string, value === '' ? null : decodeEntry(value)]);
  }
  const all = entries as Map<string, SkillEntry>;
  for (const [skillId, entry] of decoded) {
    if (entry === null) all.delete(skillId);
    else all.set(skillId, entry);
  }
  return { mark, catalogue: catalogueOf(Number(mark.split(' ', 1)[0]), all) };
}

/** Writes one skill, as `putSkills` does. @param knownSkills most skills that a tenant may know */
export const createCatalogueStore = (client: RedisClient, knownSkills: number) => ({
  put: async (tenant: string, write: SkillWrite, now: number): Promise<SkillWritten> => {
    const [written] = await putSkills(client, tenant, [write], now, { knownSkills });
    return written as SkillWritten;
  },
});

export type CatalogueStore = ReturnType<typeof createCatalogueStore>;

export interface CatalogueBounds {
  /** Most skills that the tenant may know. */
  readonly knownSkills: number;
  /** Most entries of the journal. */
  readonly journal?: number;
}

/**
 * Writes skills; those that are written are known from then on.
 *
 * They are made known after they are written, for only then is it sure which they are: what is refused leaves nothing.
 * Whoever dies in between leaves some too few, until they are answered or set again; the tenant's limit may be passed by
 * writes in flight, as by answers.
 *
 * @returns one result for each, in their order
 * @throws ApiError UNAVAILABLE, also for a Redis that came back empty, and where the journal is full: those before
 * may be written
 */
export async function putSkills(
  client: RedisClient,
  tenant: string,
  writes: readonly SkillWrite[],
  now: number,
  bounds: CatalogueBounds,
): Promise<SkillWritten[]> {
  if ((await whileRedisServes(client.exists(metaKey))) === 0) {
    throw unavailable('The state store came back empty and has to be rebuilt first');
  }
  const results: SkillWritten[] = [];
  for (let at = 0; at < writes.length; at += chunkSkills) {
    const chunk = writes.slice(at, at + chunkSkills);
    results.push(...(await putChunk(client, tenant, chunk, now, bounds)));
  }
  return results;
}

async function putChunk(
  client: RedisClient,
  tenant: string,
  chunk: readonly SkillWrite[],
  now: number,
  { knownSkills, journal = journalBound }: CatalogueBounds,
): Promise<SkillWritten[]> {
  const set = idsOf(chunk.filter(({ setting }) => setting !== null));
  const refused = set.length === 0 ? [] : (await unknownBeyond(client, tenant, set, knownSkills)).refused;
  const open = chunk.filter(({ skillId }) => !refused.includes(skillId));
  const replies = await runPut(client, tenant, open, now, journal);
  const written = idsOf(open.filter((write) => replies.get(write)?.startsWith('{')));
  await addKnownSkills(client, tenant, written);
  return chunk.map((write) => writtenOf(replies.get(write) ?? 'full'));
}

const idsOf = (writes: readonly SkillWrite[]): string[] => [...new Set(writes.map(({ skillId }) => skillId))];

/** @returns what the script says of each skill */
async function runPut(
  client: RedisClient,
  tenant: string,
  chunk: readonly SkillWrite[],
  now: number,
  journal: number,
): Promise<ReadonlyMap<SkillWrite, string>> {
  if (chunk.length === 0) return new Map();
  const keys = [
    catalogueKey(tenant),
    catalogueRevisionsKey,
    catalogueJournalKey,
    catalogueChangesKey(tenant),
  ];
  const skills = chunk.flatMap(({ skillId, setting, ifRevision }) => [
    skillId,
    ifRevision === null ? '' : ` ${ifRevision.join(' ')} `,
    setting === null ? '' : encodeSetting(setting),
    skillRow({ tenant, skillId, ...(setting ?? takenOff) }),
  ]);
  const put = () => client.eval(putSkillsScript, keys.length, ...keys, tenant, now, journal, ...skills);
  const replies = await replicated(client, catalogueRevisionsKey, () => whileRedisServes(put()));
  return new Map(chunk.map((write, i) => [write, (replies as string[])[i] as string]));
}

/** In ClickHouse a skill that is taken off weighs nothing, which one that is set never does. */
const takenOff: SkillSetting = { ...unsetSkill, weight: 0 };

function writtenOf(result: string): SkillWritten {
  if (result === 'mismatch' || result === 'full') return { status: result };
  if (result === '') return { status: 'removed' };
  if (result === 'journal') throw unavailable('Too many changes wait to be stored; try again later');
  return { status: 'written', entry: decodeEntry(result) };
}
