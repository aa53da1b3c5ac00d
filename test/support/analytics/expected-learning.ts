/** Right results of the queries on learning. */
import { distinct, groupBy, indices } from '../../../src/lists.js';
import { viewEfficiency } from '../inspect/view-efficiency.js';
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
  mean,
  meanOf,
  mondayOf,
  monthOf,
  quantile,
  quantileBetween,
  type Reckoned,
  round,
  sorted,
  sum,
  sumsOf,
} from './reckon.js';
import { type SchoolAnswer, today } from './school.js';

const lastDay = dayOf(today);
const skill = 'linear-equations';
const mastered = 0.95;

const curve: Reckoned = ({ answers }) => {
  const own = answers.filter(({ skillId }) => skillId === skill);
  const learners = [...groupBy(own, ({ userId }) => userId).values()].filter(({ length }) => length >= 10);
  return indices(10).map((i) => {
    const nth = learners.map((all) => sorted(all, (a) => a.learnerSeq)[i] as SchoolAnswer);
    const [accuracy, predicted] = [avg(nth, (a) => a.isCorrect), avg(nth, (a) => a.pCorrect)];
    return [i + 1, nth.length, accuracy, predicted, avg(nth, (a) => a.masteryAfter)];
  });
};

/** Each learner's way on each skill: answers in their turn, and days. */
const ways = (answers: readonly SchoolAnswer[]) =>
  [...groupBy(answers, ({ userId, skillId }) => `${userId} ${skillId}`).values()].map((of) => {
    const own = sorted(
      of,
      (a) => a.occurredAt,
      (a) => a.learnerSeq,
    );
    const days = sorted(learnerDays(own), ({ day }) => day);
    return { own, days, skillId: own[0]?.skillId ?? '', last: days.at(-1) as LearnerDay };
  });

const isMastered = ({ masteryAfter }: SchoolAnswer): boolean => masteryAfter >= mastered;

const funnel: Reckoned = ({ answers }) => {
  const rows = [...groupBy(ways(answers), ({ skillId }) => skillId)].map(([skillId, all]): Cell[] => {
    const practised = all.filter(({ own }) => own.length >= 5);
    const halfWay = count(practised, ({ own }) => own.some((a) => a.masteryAfter >= 0.6));
    const masters = count(practised, ({ own }) => own.some(isMastered));
    const still = count(practised, ({ own }) => {
      const last = sorted(own, (a) => a.learnerSeq).at(-1);
      return last !== undefined && isMastered(last);
    });
    const share = round(masters / all.length, 2);
    return [skillId, all.length, practised.length, halfWay, masters, still, share];
  });
  return sorted(rows, column(6), column(0)).slice(0, 10);
};

const timeToMastery: Reckoned = ({ answers }) => {
  const rows = [...groupBy(ways(answers), ({ skillId }) => skillId)].flatMap(([skillId, all]): Cell[][] => {
    const reached = all.flatMap(({ own }) => {
      const at = own.findIndex(isMastered);
      return at < 0 ? [] : [own.slice(0, at + 1)];
    });
    const dayOfAnswer = (a: SchoolAnswer | undefined): number => dayOf(a?.occurredAt ?? 0);
    const needed = reached.map(({ length }) => length);
    const active = reached.map((own) => distinct(own.map(dayOfAnswer)).length);
    const span = reached.map((own) => dayOfAnswer(own.at(-1)) - dayOfAnswer(own[0]) + 1);
    if (needed.length < 10) return [];
    return [
      [
        ...[skillId, needed.length, round(needed.length / all.length, 2)],
        ...[quantile(needed, 0.5), quantile(needed, 0.9), quantile(active, 0.5), quantile(span, 0.5)],
      ],
    ];
  });
  return sorted(rows, down(3), column(0)).slice(0, 10);
};

const slowest: Reckoned = ({ answers }) => {
  const rows = [...groupBy(ways(answers), ({ skillId }) => skillId)].map(([skillId, own]): Cell[] => {
    const velocities = own.map(({ days }) => sum(days, (d) => d.gain) / days.length);
    const days = own.flatMap((way) => way.days);
    const perMinute = (60 * sum(days, (d) => d.timedCorrect)) / sum(days, (d) => d.seconds);
    return [
      ...[skillId, own.length],
      ...[0.25, 0.5, 0.75].map((level) => round(quantileBetween(velocities, level), 3)),
      ...[round(perMinute, 2), avg(own, ({ last }) => last.plateau, 2)],
    ];
  });
  return sorted(rows, column(3), column(0)).slice(0, 10);
};

/** Rows of cohort_skill_weekly of one skill. */
function cohortWeeks(answers: readonly SchoolAnswer[]) {
  const cohorts = cohortsOf(answers);
  const days = learnerDays(answers.filter(({ skillId }) => skillId === skill));
  const weekOf = ({ userId, day }: LearnerDay): number => (mondayOf(day) - (cohorts.get(userId) ?? 0)) / 7;
  const groups = groupBy(days, (day) => `${cohorts.get(day.userId)} ${weekOf(day)}`);
  return [...groups.values()].map((own) => {
    const first = own[0] as LearnerDay;
    const learners = byLearnerSkill(own);
    return {
      ...{
        cohort: cohorts.get(first.userId) ?? 0,
        week: weekOf(first),
        learners: learners.length,
        days: own,
      },
      answers: sum(own, (d) => d.answers),
      mastery: mean(own, (day) => day.mastery),
      velocity: sum(own, (d) => d.gain) / own.length,
    };
  });
}

/** The Monday of each learner's first week. */
const cohortsOf = (answers: readonly SchoolAnswer[]): Map<string, number> =>
  new Map(
    [...groupBy(answers, ({ userId }) => userId)].map(([userId, own]) => [
      userId,
      mondayOf(Math.min(...own.map(({ occurredAt }) => dayOf(occurredAt)))),
    ]),
  );

const weekByWeek: Reckoned = ({ answers }) =>
  indices(8).map((week) => {
    const own = cohortWeeks(answers).filter((row) => row.week === week);
    const days = own.flatMap((row) => row.days);
    const [learners, all] = [sum(own, (row) => row.learners), sum(days, (d) => d.answers)];
    return [
      ...[week, learners, all],
      round(sum(own, (row) => row.learners * row.mastery) / learners, 3),
      ...[round(sum(days, (d) => d.correct) / all, 3), round(sum(days, (d) => d.gain) / all, 4)],
    ];
  });

const besideEachOther: Reckoned = ({ answers }) => {
  const norm = sumsOf(answers.filter(({ skillId }) => skillId === skill));
  const rows = cohortWeeks(answers)
    .filter(({ week, learners }) => week < 4 && learners >= 3)
    .map(({ cohort, week, learners, mastery, velocity, days }): Cell[] => {
      const efficiency = viewEfficiency(
        {
          timed: sum(days, (d) => d.timed),
          timedCorrect: sum(days, (d) => d.timedCorrect),
          logSeconds: sum(days, (d) => d.logSeconds),
        },
        norm,
      );
      const figures = [round(mastery, 3), round(velocity, 3)];
      return [dateOf(cohort), week, learners, ...figures, efficiency === null ? null : round(efficiency, 1)];
    });
  return sorted(rows, column(0), column(1)).slice(0, 10);
};

/** Skills, of a good beginning. */
const masters = 5;

const laterCohorts: Reckoned = ({ answers }) => {
  const learners = [...groupBy(answers, ({ userId }) => userId).values()].map((own) => {
    const began = Math.min(...own.map(({ occurredAt }) => dayOf(occurredAt)));
    const month = own.filter((a) => isMastered(a) && dayOf(a.occurredAt) < began + 28);
    return { began, inTime: distinct(month.map(({ skillId }) => skillId)).length >= masters };
  });
  const old = learners.filter(({ began }) => began + 28 <= lastDay);
  const rows = [...groupBy(old, ({ began }) => monthOf(began))].flatMap(([month, own]): Cell[][] => {
    const [n, k] = [own.length, count(own, ({ inTime }) => inTime)];
    const [low, high] = wilson(k / n, n);
    return n < 5 ? [] : [[month, n, k, round(k / n, 3), round(low, 3), round(high, 3)]];
  });
  return sorted(rows, column(0));
};

/** The ends of Wilson's interval, as textbooks have them. */
function wilson(share: number, n: number, z = 1.96): [number, number] {
  const centre = share + z ** 2 / (2 * n);
  const half = z * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n ** 2));
  return [(centre - half) / (1 + z ** 2 / n), (centre + half) / (1 + z ** 2 / n)];
}

const fastestCohort: Reckoned = ({ answers }) => {
  const learners = ways(answers)
    .filter(({ skillId }) => skillId === skill)
    .map(({ days }) => {
      const began = days[0]?.day ?? 0;
      const month = days.filter(({ day }) => day < began + 28);
      return { began, velocity: sum(month, (d) => d.gain) / sum(month, (d) => d.answers) };
    });
  const rows = [...groupBy(learners, ({ began }) => monthOf(began))].flatMap(([month, own]): Cell[][] => {
    const velocities = own.map(({ velocity }) => velocity);
    const centre = meanOf(velocities);
    const variance = sum(velocities, (v) => (v - centre) ** 2) / (own.length - 1);
    const half = 1.96 * Math.sqrt(variance / own.length);
    const ends = [round(centre - half, 4), round(centre + half, 4)];
    return own.length < 5 ? [] : [[month, own.length, round(centre, 4), ...ends]];
  });
  return sorted(rows, column(0));
};

const everyDay: Reckoned = ({ answers }) => {
  const own = answers.filter(({ skillId }) => skillId === skill);
  const rows = [...groupBy(own, ({ occurredAt }) => dayOf(occurredAt))].map(([day, of]): Cell[] => [
    ...[dateOf(day), distinct(of.map(({ userId }) => userId)).length, of.length],
    avg(of, (a) => a.isCorrect),
  ]);
  return sorted(rows, column(0)).toReversed().slice(0, 7);
};

export const expectedLearning: Readonly<Record<string, Reckoned>> = {
  'Does practice of a skill help? (learning curve)': curve,
  'How far do learners get on each skill? (mastery funnel)': funnel,
  'How long does it take to master a skill?': timeToMastery,
  'On which skills are learners slowest?': slowest,
  'How do beginners of a skill come on, week by week?': weekByWeek,
  'Do those who began later do better? (cohorts with intervals)': laterCohorts,
  'Which cohort learns a skill fastest?': fastestCohort,
  'How do two cohorts do in the same week of their course?': besideEachOther,
  'How many learners practise a skill each day?': everyDay,
};
