/** Answers by route and status: whether each route was reached, and how deep. */
import { formatTable } from '../../../src/lab/report/format.js';
import { nameOf, routeTable, type Target } from '../http/route-table.js';

/** What came of a request: a status, or why there was no answer. */
export type Outcome = number | 'head too long' | 'export cut' | 'lost';

export interface AnswerCounts {
  note(target: Target, outcome: Outcome): void;
  /** Of all routes together. */
  of(outcome: Outcome): number;
  /** Routes that never did what they are asked for. */
  unreached(): string[];
  table(): string;
}

const nowhere = 'no route';

export function createAnswerCounts(): AnswerCounts {
  const routes = [...routeTable.map(nameOf), nowhere];
  const counts = new Map(routes.map((name) => [name, new Map<Outcome, number>()]));
  const sum = (outcome: Outcome): number =>
    [...counts.values()].reduce((total, own) => total + (own.get(outcome) ?? 0), 0);
  return {
    note: ({ route }, outcome) => {
      const own = counts.get(route === null ? nowhere : nameOf(route)) as Map<Outcome, number>;
      own.set(outcome, (own.get(outcome) ?? 0) + 1);
    },
    of: sum,
    unreached: () =>
      routes.filter((name) => name !== nowhere && ![...(counts.get(name)?.keys() ?? [])].some(isSuccess)),
    table: () => {
      const outcomes = [...new Set([...counts.values()].flatMap((own) => [...own.keys()]))].sort(byText);
      const lines = [...counts].map(([name, own]) => [
        name,
        ...outcomes.map((one) => `${own.get(one) ?? ''}`),
      ]);
      const all = ['all', ...outcomes.map((one) => `${sum(one)}`)];
      return formatTable([['route', ...outcomes.map(String)], ...lines, all]);
    },
  };
}

const isSuccess = (outcome: Outcome): boolean => typeof outcome === 'number' && outcome < 400;

const byText = (a: Outcome, b: Outcome): number => (`${a}` < `${b}` ? -1 : 1);
