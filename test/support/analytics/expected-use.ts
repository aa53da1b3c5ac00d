/** Right results of the queries on use and habits. */
import { distinct, groupBy, indices } from '../../../src/lists.js';
import {
  avg,
  byLearnerSkill,
  type Cell,
  column,
  count,
  dateOf,
  dayOf,
  down,
  type LearnerDay,
  learnerDays,
  mondayOf,
  type Reckoned,
  round,
  sorted,
  sum,
} from './reckon.js';
import { dayMs, type SchoolAnswer, today } from './school.js';

const lastDay = dayOf(today);

const weeks: Reckoned = ({ answers }) => {
  const recent = learnerDays(answers).filter(({ day }) => day > lastDay - 70);
  const rows = [...groupBy(recent, ({ day }) => mondayOf(day))].map(([monday, days]): Cell[] => {
    const learners = distinct(days.map(({ userId }) => userId)).length;
    const [all, seconds] = [sum(days, (d) => d.answers), sum(days, (d) => d.seconds)];
    return [dateOf(monday), learners, all, round(all / learners, 1), round(seconds / 60 / learners)];
  });
  return sorted(rows, column(0)).toReversed().slice(0, 10);
};

const retention: Reckoned = ({ answers }) => {
  const learners = [...groupBy(answers, ({ userId }) => userId).values()].map((own) => {
    const days = own.map(({ occurredAt }) => dayOf(occurredAt));
    const first = Math.min(...days);
    return { first, weeks: new Set(days.map((day) => Math.floor((day - first) / 7))) };
  });
  return [0, 1, 2, 3, 4, 6, 8, 12, 16, 24].flatMap((week) => {
    const could = learners.filter(({ first }) => first + 7 * week + 6 <= lastDay);
    const came = count(could, (learner) => learner.weeks.has(week));
    return could.length === 0 ? [] : [[week, could.length, came, round(came / could.length, 3)]];
  });
};

const stopped: Reckoned = ({ answers }) => {
  const rows = [...groupBy(learnerDays(answers), ({ userId }) => userId)].flatMap(([userId, own]) => {
    const days = [...groupBy(own, ({ day }) => day)].sort(([a], [b]) => a - b);
    const [last, lastRows] = days.at(-1) as [number, LearnerDay[]];
    const accuracy = (rows: readonly LearnerDay[]): number =>
      round(sum(rows, (d) => d.correct) / sum(rows, (d) => d.answers), 2);
    const idle = lastDay - last;
    if (idle < 14 || idle > 56 || days.length < 10) return [];
    const plateau = lastRows.some((d) => d.plateau) ? 1 : 0;
    return [[userId, dateOf(last), idle, days.length, accuracy(own), accuracy(lastRows), plateau]];
  });
  return sorted(rows, down(3), column(0)).slice(0, 10);
};

const local = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Europe/Berlin',
  hour: '2-digit',
  weekday: 'short',
});

const times: Reckoned = ({ answers }) => {
  const placed = answers.map((answer) => {
    const parts = local.formatToParts(answer.occurredAt);
    const part = (type: string): string => parts.find((p) => p.type === type)?.value ?? '';
    const days = ['Sat', 'Sun'].includes(part('weekday')) ? 'weekend' : 'school day';
    return { answer, days, from: 6 * Math.floor(Number(part('hour')) / 6) };
  });
  const rows = [...groupBy(placed, ({ days, from }) => `${days} ${from}`).values()].map((own): Cell[] => [
    ...[own[0]?.days ?? '', own[0]?.from ?? 0, own.length],
    avg(own, ({ answer }) => answer.isCorrect),
    avg(own, ({ answer }) => Number(answer.isCorrect) - answer.pCorrect),
    avg(own, ({ answer }) => answer.isRapid),
  ]);
  return sorted(rows, column(0), column(1));
};

/** A learner's week on a skill, with what came of it at the next one. */
function learnerWeeks(answers: readonly SchoolAnswer[]) {
  return byLearnerSkill(learnerDays(answers)).flatMap((own) => {
    const weeks = [...groupBy(own, ({ day }) => mondayOf(day)).values()];
    return weeks.map((days, i) => ({
      days: days.length,
      answers: sum(days, (d) => d.answers),
      gain: sum(days, (d) => d.gain),
      mastery: days.at(-1)?.mastery ?? 0,
      next: weeks[i + 1]?.[0]?.cameWith ?? null,
    }));
  });
}

const cramming: Reckoned = ({ answers }) => {
  const weeks = learnerWeeks(answers).filter((week) => week.answers >= 8 && week.answers <= 30);
  return indices(4).map((i) => {
    const own = weeks.filter(({ days }) => Math.min(days, 4) === i + 1);
    const followed = own.filter(({ next }) => next !== null);
    return [
      ...[i + 1, own.length],
      avg(own, (w) => w.answers, 1),
      round(sum(own, (w) => w.gain) / sum(own, (w) => w.answers), 4),
      avg(own, (w) => w.mastery),
      avg(followed, (w) => (w.next ?? 0) / w.mastery),
    ];
  });
};

const pauses: readonly (readonly [upTo: number, name: string])[] = [
  [1, '1 day'],
  [3, '2 to 3'],
  [7, '4 to 7'],
  [14, '8 to 14'],
  [30, '15 to 30'],
  [Number.POSITIVE_INFINITY, 'longer'],
];

const forgetting: Reckoned = ({ answers }) => {
  const returns = byLearnerSkill(learnerDays(answers))
    .flatMap((own) =>
      own.slice(1).map((day, i) => {
        const before = own[i] as LearnerDay;
        return { ...day, pause: day.day - before.day, leftWith: before.mastery };
      }),
    )
    .filter((day) => day.answers <= 10);
  return pauses.map(([upTo, name], i) => {
    const own = returns.filter(({ pause }) => pause <= upTo && pause > (pauses[i - 1]?.[0] ?? 0));
    const all = sum(own, (d) => d.answers);
    return [
      ...[name, own.length],
      avg(own, (d) => d.leftWith),
      avg(own, (d) => d.cameWith),
      round(sum(own, (d) => d.correct) / all, 3),
      round(sum(own, (d) => d.predicted) / all, 3),
    ];
  });
};

/** Answers of the last 28 days, those that came in them. */
const recent = (answers: readonly SchoolAnswer[]): SchoolAnswer[] =>
  answers.filter((a) => a.receivedAt >= today - 28 * dayMs && dayOf(a.occurredAt) > lastDay - 28);

const right = ({ isCorrect }: SchoolAnswer): boolean => isCorrect;
const isRapid = (answer: SchoolAnswer): boolean => answer.isRapid;
const isSolved = (answer: SchoolAnswer): boolean => !answer.isRapid;

const rapidSkills: Reckoned = ({ answers }) => {
  const timed = answers.filter(({ timeSpentSeconds }) => (timeSpentSeconds ?? 0) > 0);
  const rows = [...groupBy(timed, ({ skillId }) => skillId)].map(([skillId, own]): Cell[] => [
    ...[skillId, own.length, avg(own, isRapid)],
    ...[avg(own.filter(isRapid), right), avg(own.filter(isSolved), right)],
  ]);
  return sorted(rows, down(2), column(0)).slice(0, 10);
};

const guessers: Reckoned = ({ answers }) => {
  const rows = [...groupBy(recent(answers), ({ userId }) => userId)]
    .map(([userId, own]): Cell[] => [
      ...[userId, own.length, count(own, isRapid), avg(own, isRapid)],
      ...[avg(own.filter(isRapid), right), avg(own.filter(isSolved), right)],
    ])
    .filter(([, all, , share]) => Number(all) >= 20 && Number(share) >= 0.1);
  return sorted(rows, down(3), column(0)).slice(0, 10);
};

const confidence: Reckoned = ({ answers }) => {
  const asked = answers.filter(({ confidenceScore }) => confidenceScore !== null);
  const rows = [...groupBy(asked, ({ confidenceScore }) => confidenceScore ?? 0)].map(
    ([score, own]): Cell[] => {
      const [accuracy, stated] = [avg(own, right), round(0.2 * score - 0.1, 1)];
      return [score, own.length, accuracy, stated, round(stated - accuracy, 3)];
    },
  );
  return sorted(rows, column(0));
};

const misconceptions: Reckoned = ({ answers }) => {
  const asked = answers.filter((a) => a.itemId !== null && !a.isRapid && a.confidenceScore !== null);
  const rows = [...groupBy(asked, ({ itemId }) => itemId ?? '')].flatMap(([itemId, own]): Cell[][] => {
    const sure = own.filter(({ confidenceScore }) => (confidenceScore ?? 0) >= 4);
    const wrong = count(sure, (a) => !a.isCorrect);
    const skillId = own[0]?.skillId ?? '';
    if (sure.length < 10) return [];
    return [[skillId, itemId, own.length, sure.length, wrong, round(wrong / sure.length, 3)]];
  });
  return sorted(rows, down(5), column(1)).slice(0, 10);
};

export const expectedUse: Readonly<Record<string, Reckoned>> = {
  'How many learners come each week, and how much do they do?': weeks,
  'How many learners are still there some weeks after they began?': retention,
  'Who stopped coming?': stopped,
  'Which weekday and time of day suit learners?': times,
  'Is a steady week worth more than a day of cramming?': cramming,
  'How much is forgotten between two days of practice?': forgetting,
  'Where do learners guess instead of solving? (rapid answers)': rapidSkills,
  'Who guesses?': guessers,
  'Do learners know what they know? (confidence)': confidence,
  'Which mistakes are learners sure of? (misconceptions)': misconceptions,
};
