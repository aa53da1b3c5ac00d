/** What a rebuild needs of ClickHouse, of Redis and of the workers, and what they guarantee. */
import type { OutboxId } from '../../contracts/outbox-ids.js';
import type { CompareReply, RestoreReply, TakenBaseline } from '../../contracts/rebuild-tasks.js';
import type { ModelChange, RecordedChange } from '../models/fit-ports.js';
import type { FactsHistory } from './deployment-facts.js';

/** A learner by name. */
export interface LearnerPlace {
  readonly tenant: string;
  readonly userId: string;
}

/** With the partition that a row of the learner was written for. */
export interface PlacedLearner extends LearnerPlace {
  readonly partition: number;
}

/** Learners in the order of tenant and user. */
export interface AttemptPage {
  /**
   * As contracts/attempt-row-reader.ts reads them, then a tab and an empty field, or the snapshot of the learner that the
   * following rows go on from, or the number that is the baseline where rows do not tell it; a line feed behind each.
   */
  readonly rows: Uint8Array;
  readonly last: LearnerPlace;
}

/** What ClickHouse has of some learners. */
export interface FoundLearners {
  /** As contracts/attempt-row-reader.ts reads them, in no order. */
  readonly rows: readonly string[];
  /** Tenant, user and state, as tab-separated fields. */
  readonly snapshots: readonly string[];
  /** Tenant, user and baseline, likewise. */
  readonly baselines: readonly string[];
}

/** What is restored beside the learners' states. */
export interface GoalRecord extends LearnerPlace {
  /** Null: the goal was taken away. */
  readonly targetScore: number | null;
  readonly targetDate: string | null;
  /** Unix milliseconds. */
  readonly updatedAt: number;
}

export interface AnsweredSkill {
  readonly skillId: string;
  /** Some of those who answered it, as many as make it known (`learnersOfKnownSkill`). */
  readonly userIds: readonly string[];
}

export interface CatalogueRecord {
  readonly tenant: string;
  readonly skillId: string;
  readonly revision: number;
  /** Unix milliseconds. */
  readonly updatedAt: number;
  readonly name: string | null;
  readonly section: 'math' | 'rw' | null;
  readonly weight: number;
  readonly parameters: { pInit: number; pLearn: number; pGuess: number; pSlip: number } | null;
}

/** Answers on an item, as far as rows tell. */
export interface ItemRecord {
  readonly itemId: string;
  readonly answers: number;
  readonly right: number;
  readonly expected: number;
}

export interface PartitionFigures {
  readonly partition: number;
  readonly tenant: string;
  /** UTC day of arrival, number since 1970. */
  readonly day: number;
  readonly answers: number;
}

/** The event id of an answer that was taken back: a late repeat must not bring it back. */
export interface TakenBackId extends LearnerPlace {
  readonly eventId: string;
  /** As it is remembered under the id, in base64. */
  readonly firstAnswer: string;
}

/** The tables in ClickHouse. Lists that may be long come in pieces. @throws Error where it cannot tell */
export interface RebuildSource extends Pick<FactsHistory, 'deployment' | 'keys'> {
  holdsState(): Promise<boolean>;
  /** Some learners. */
  samplePlaces(): Promise<readonly PlacedLearner[]>;
  countAnswers(partitions: readonly number[]): Promise<number>;
  /** The learners after one; null where there are none. @param partitions whose learners are meant */
  page(partitions: readonly number[], after: LearnerPlace | null): Promise<AttemptPage | null>;
  learners(learners: readonly LearnerPlace[]): Promise<FoundLearners>;
  /** Keeps baselines for later replays. @param takenAt Unix milliseconds */
  keepBaselines(baselines: readonly TakenBaseline[], takenAt: number): Promise<void>;
  /** Those of whom it has nothing. */
  unknown(learners: readonly LearnerPlace[]): Promise<LearnerPlace[]>;
  /** The last month of arrival, as 202601, whose rows were dropped; 0: none. */
  archivedMonth(): Promise<number>;
  /** Answers that were taken back, with an id that is remembered. */
  takenBack(fromSecond: number): AsyncIterable<readonly TakenBackId[]>;
  /** Those with answers. */
  tenants(): Promise<readonly string[]>;
  answeredSkills(tenant: string): AsyncIterable<readonly AnsweredSkill[]>;
  goals(): AsyncIterable<readonly GoalRecord[]>;
  catalogue(): Promise<readonly CatalogueRecord[]>;
  /** Newest first. */
  modelChanges(): Promise<readonly ModelChange[]>;
  modelTexts(change: ModelChange): Promise<RecordedChange>;
  newestVersions(): Promise<ReadonlyMap<string, number>>;
  items(tenant: string): AsyncIterable<readonly ItemRecord[]>;
  answersByDay(partitions: readonly number[]): Promise<readonly PartitionFigures[]>;
  /** The highest outbox id of the partition. */
  lastOutboxId(partition: number): Promise<OutboxId | null>;
}

/** Where a rebuild stands; kept in Redis, so that a later run goes on there. */
export interface Checkpoint {
  readonly v: 3;
  /** By whose formulas learners are restored: no other version goes on with it. */
  readonly modelVersion: number;
  /** What is restored. */
  readonly partitions: readonly number[];
  readonly shared: readonly SharedState[];
  /** Partitions among them whose counters of accepted answers are still there. */
  readonly counted: readonly number[];
  /** Event ids that arrived at this Unix second or later are remembered. */
  readonly idsFrom: number;
  /** Learners up to this one are there. */
  readonly after: LearnerPlace | null;
  readonly learnersDone: boolean;
  readonly learners: number;
  readonly answers: number;
  /** Learners whose abilities are those of a snapshot of earlier formulas. */
  readonly keptAbilities: number;
  readonly newBaselines: number;
}

/** What belongs to no partition. */
export type SharedState = 'keys' | 'catalogues' | 'models';

/** Redis. All writes may be repeated. @throws ApiError UNAVAILABLE */
export interface RebuildStore {
  /** Number of partitions that Redis says it has; null where it says nothing. */
  partitions(): Promise<number | null>;
  /** Whether the learners would be placed so where there are so many partitions. */
  agrees(places: readonly PlacedLearner[], count: number): boolean;
  /** Partitions that are not restored. @param count how many there are */
  lost(count: number): Promise<number[]>;
  lostShared(): Promise<SharedState[]>;
  /** Those of the partitions that have counters of accepted answers. */
  counted(partitions: readonly number[]): Promise<number[]>;
  checkpoint(): Promise<Checkpoint | null>;
  save(checkpoint: Checkpoint): Promise<void>;
  /** Remembers ids that are not taken. @param count partitions of the deployment, of which some are restored */
  putTakenBack(ids: readonly TakenBackId[], partitions: readonly number[], count: number): Promise<void>;
  /** Rows of learners that wait in the outbox or are put aside, in no order. @param count partitions of the deployment */
  waiting(learners: readonly LearnerPlace[], count: number): Promise<string[]>;
  /** All learners with answers, piece by piece; one may come twice. */
  learners(): AsyncIterable<readonly LearnerPlace[]>;
  /** Nothing that arrived up to this month enters the partition's outbox any more. */
  raiseFence(partition: number, month: number): Promise<void>;
  /** Skills that are set. */
  addSkills(tenant: string, skillIds: readonly string[]): Promise<void>;
  /** Skills with fewer learners are rare from then on, unless they are set. */
  noteAnswered(tenant: string, skills: readonly AnsweredSkill[]): Promise<void>;
  putGoals(goals: readonly GoalRecord[], partitions: readonly number[], count: number): Promise<void>;
  putCatalogue(tenant: string, entries: readonly CatalogueRecord[]): Promise<void>;
  /** Those of a tenant's changes whose versions can be used again. */
  versionsKept(changes: readonly ModelChange[]): ModelChange[];
  /** @param changes of one tenant, newest first. @param kept texts of those that can be used again */
  putModels(
    tenant: string,
    changes: readonly ModelChange[],
    kept: readonly RecordedChange[],
    newest: number,
  ): Promise<void>;
  putItems(tenant: string, version: number, items: readonly ItemRecord[]): Promise<void>;
  putKeys(keys: Awaited<ReturnType<FactsHistory['keys']>>['keys']): Promise<void>;
  putAccepted(figures: readonly PartitionFigures[]): Promise<void>;
  /** Later rows of the outbox get ids above this one. */
  raiseOutbox(partition: number, id: OutboxId): Promise<void>;
  /** Ends the rebuild: the service may use the state from now on. */
  finish(
    checkpoint: Checkpoint,
    facts: { deploymentId: string; createdAt: string; partitions: number },
  ): Promise<void>;
}

export interface PageOptions {
  /** How many the deployment has. */
  readonly count: number;
  readonly idsFrom: number;
}

/** Threads that replay learners. */
export interface RebuildThreads {
  readonly threads: number;
  /** Writes what the page's rows give. @throws ApiError UNAVAILABLE */
  restore(page: AttemptPage, options: PageOptions): Promise<RestoreReply>;
  /** Compares what is stored with what the rows give. @throws ApiError UNAVAILABLE */
  compare(learners: Pick<AttemptPage, 'rows'>, count: number): Promise<CompareReply>;
  close(): Promise<void>;
}
