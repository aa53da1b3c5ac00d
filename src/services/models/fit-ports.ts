/** What fits need from Redis, ClickHouse and the workers, and what these guarantee. */
import type { AnswersReply, PublishTask } from '../../contracts/fit-tasks.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import type { ItemFigures } from '../../domain/fit/prediction/served.js';
import type { StageRunner } from '../../domain/fit/stages.js';

/** How much a tenant has in ClickHouse. */
export interface TenantAnswers {
  readonly tenant: string;
  readonly answers: number;
  /** Changes whenever answers come or go. */
  readonly mark: string;
}

/** The history of a tenant's answers, which fits read. */
export interface AnswerHistory {
  /** Every tenant with answers, by name. */
  tenants(): Promise<TenantAnswers[]>;
}

/** A version came into force. */
export interface ModelChange {
  readonly tenant: string;
  /** Number of the change within the tenant, from 1 without gaps. */
  readonly change: number;
  readonly version: number;
  /** Version that was in force before. */
  readonly basedOn: number;
  readonly action: 'fit' | 'rollback';
  /** Unix milliseconds. */
  readonly publishedAt: number;
}

/** A change with what it brought into force; both texts are empty for version 0 and for what is no longer kept. */
export interface RecordedChange extends ModelChange {
  /** JSON of contracts/model.ts. */
  readonly model: string;
  /** JSON of a `FitReport`. */
  readonly report: string;
}

/** The copy of the publications for analysts and rebuilds. */
export interface ModelHistory {
  /** Number of the last change that is there, by tenant. */
  lastChanges(): Promise<ReadonlyMap<string, number>>;
  /** Adds a change, and the parameters of a fitted version; doing it again adds nothing. */
  add(change: RecordedChange): Promise<void>;
}

/** A version that can be used again. */
export interface KeptVersion {
  readonly version: number;
  readonly basedOn: number;
  /** Unix milliseconds. */
  readonly publishedAt: number;
  readonly inForce: boolean;
}

/** Where models are published. A change of what is in force is one atomic step. */
export interface ModelPublisher {
  /** Version in force; 0 before the first fit. */
  inForce(tenant: string): Promise<number>;
  /** @throws Error for one that is not kept, or not readable by this version of the service */
  read(tenant: string, version: number): Promise<TenantModel>;
  /** A number that no other version of the tenant has or had. */
  reserve(tenant: string): Promise<number>;
  /** Versions that are kept, newest first, 0 aside. */
  versions(tenant: string): Promise<KeptVersion[]>;
  /**
   * Brings a kept version, or 0, into force again.
   * @param expected version in force until now; where another is, nothing changes
   */
  use(tenant: string, version: number, expected: number): Promise<'used' | 'superseded' | 'not-kept'>;
  /** Tenants that ever had a publication. */
  tenants(): Promise<string[]>;
  /** Changes after the given one, oldest first; the oldest of very many may be gone. */
  changesAfter(tenant: string, change: number): Promise<RecordedChange[]>;
  /** What the last finished fit had seen; null before the first. */
  lastFit(tenant: string): Promise<string | null>;
  /**
   * Ends a fit: forgets versions that are too old and what dead processes left. A process that dies before this leaves
   * no note, so that the next fit does it.
   */
  noteFit(tenant: string, mark: string): Promise<void>;
}

/** Threads for the heavy parts of a fit. They end with `close`, whatever they do. */
export interface FitThreads extends StageRunner {
  /** Reads a tenant's answers; their bytes stay out of this thread. */
  read(tenant: string): Promise<AnswersReply>;
  /** What the version's fit found for items, by their hashes; zeros for those that it did not see. */
  items(tenant: string, version: number, itemHashes: Uint8Array): Promise<ItemFigures>;
  /** Publishes a version. @returns false where another version came into force meanwhile */
  publish(task: Omit<PublishTask, 'kind' | 'redisUrl'>): Promise<boolean>;
  close(): Promise<void>;
}
