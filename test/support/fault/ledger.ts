/** What a test client has sent and what it was told, answer by answer. */

export interface AnswerEvent {
  readonly user_id: string;
  readonly skill_id: string;
  readonly is_correct: boolean;
  readonly time_spent_seconds?: number;
  readonly item_id?: string;
  readonly event_id: string;
}

/** An answer of the ledger. */
export interface Entry {
  readonly tenant: string;
  readonly event: AnswerEvent;
  /** JSON that the first confirmation told; null while there is none. */
  first: string | null;
  /** How often it was told as counted just now: 1 is right. */
  fresh: number;
  /** What another confirmation told instead of `first`. */
  otherwise: string | null;
  /** Whether it was taken back. A repeat is told the first answer all the same. */
  takenBack: boolean;
}

export interface Ledger {
  readonly entries: Entry[];
  /** Answers of the service that no caller should ever see. */
  readonly faulty: string[];
  /** How often a request was refused or its connection lost. */
  refused: number;
  /** How often the service called it a defect of its own. */
  failed: number;
}

export const emptyLedger = (): Ledger => ({ entries: [], faulty: [], refused: 0, failed: 0 });

export const newEntry = (tenant: string, event: AnswerEvent): Entry => ({
  tenant,
  event,
  first: null,
  fresh: 0,
  otherwise: null,
  takenBack: false,
});

/** Notes a confirmation. */
export function confirm(entry: Entry, data: unknown, replayed: boolean): void {
  const told = JSON.stringify(data);
  if (!replayed) entry.fresh += 1;
  entry.first ??= told;
  if (entry.first !== told) entry.otherwise = told;
}

export function joined(ledgers: readonly Ledger[]): Ledger {
  return {
    entries: ledgers.flatMap(({ entries }) => entries),
    faulty: ledgers.flatMap(({ faulty }) => faulty),
    refused: ledgers.reduce((sum, { refused }) => sum + refused, 0),
    failed: ledgers.reduce((sum, { failed }) => sum + failed, 0),
  };
}
