/** Right results of the queries on items and people. */
import { distinct, groupBy } from '../../../src/lists.js';
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
  quantile,
  type Reckoned,
  round,
  sorted,
  sum,
} from './reckon.js';
import { dayMs, type SchoolAnswer, today } from './school.js';

const lastDay = dayOf(today);
const skill = 'linear-equations';
const right = ({ isCorrect }: SchoolAnswer): boolean => isCorrect;

const byItem = (answers: readonly SchoolAnswer[]) => [
  ...groupBy(
    answers.filter(({ itemId }) => itemId !== null),
    ({ itemId }) => itemId ?? '',
  ),
];
const solved = (answers: readonly SchoolAnswer[]) => answers.filter(({ isRapid }) => !isRapid);

const hardest: Reckoned = ({ answers }) => {
  const rows = byItem(solved(answers)).map(([itemId, own]): Cell[] => {
    const expected = avg(own, ({ masteryBefore: known, parameters: { pGuess, pSlip } }) => {
      return known * (1 - pSlip) + (1 - known) * pGuess;
    });
    const seconds = own.flatMap(({ timeSpentSeconds }) => timeSpentSeconds ?? []);
    const accuracy = avg(own, right);
    const figures = [accuracy, expected, round(accuracy - expected, 3), round(quantile(seconds, 0.5))];
    return [itemId, own.length, ...figures];
  });
  return sorted(rows, column(2), column(0)).slice(0, 10);
};

const misleading: Reckoned = ({ answers }) => {
  const rows = byItem(solved(answers)).flatMap(([itemId, own]): Cell[][] => {
    const strong = own.filter(({ masteryBefore }) => masteryBefore >= 0.8);
    const weak = own.filter(({ masteryBefore }) => masteryBefore < 0.5);
    if (strong.length < 15 || weak.length < 15) return [];
    const [of, against] = [avg(strong, right), avg(weak, right)];
    return [[itemId, strong.length, weak.length, of, against, round(of - against, 3)]];
  });
  return sorted(rows, column(5), column(0)).slice(0, 10);
};

const exposure: Reckoned = ({ answers }) => {
  const rows = byItem(answers.filter(({ skillId }) => skillId === skill)).map(([itemId, own]): Cell[] => {
    const learners = [...groupBy(own, ({ userId }) => userId).values()];
    const first = learners.map((all) => sorted(all, (a) => a.learnerSeq)[0] as SchoolAnswer);
    const later = own.filter((answer) => !first.includes(answer));
    const each = round(own.length / learners.length, 2);
    return [itemId, learners.length, own.length, each, avg(first, right), avg(later, right)];
  });
  return sorted(rows, down(3), column(0)).slice(0, 10);
};

const classReport: Reckoned = ({ answers }) => {
  const days = learnerDays(answers.filter((a) => a.skillId === skill && a.userId <= 'demo-020'));
  const rows = byLearnerSkill(days).map((own): Cell[] => {
    const last = own.at(-1) as LearnerDay;
    const all = sum(own, (d) => d.answers);
    const mastery = round(last.mastery, 3);
    const idle = lastDay - last.day;
    const stands = () => {
      if (mastery >= 0.95 && all >= 5) return idle >= 28 ? 'review' : 'mastered';
      if (idle >= 28) return 'stopped';
      if (last.plateau) return 'stuck';
      return all < 5 ? 'too few answers' : 'on the way';
    };
    const accuracy = round(sum(own, (d) => d.correct) / all, 2);
    return [last.userId, all, accuracy, mastery, idle, stands()];
  });
  return sorted(rows, column(3), column(0)).slice(0, 10);
};

const atRisk: Reckoned = ({ answers }) => {
  const days = learnerDays(answers).filter(({ day }) => day > lastDay - 56);
  const rows = [...groupBy(days, ({ userId }) => userId)].map(([userId, own]): Cell[] => {
    const now = own.filter(({ day }) => day > lastDay - 28);
    const idle = lastDay - Math.max(...own.map(({ day }) => day));
    const [all, before] = [
      sum(now, (d) => d.answers),
      sum(own, (d) => d.answers) - sum(now, (d) => d.answers),
    ];
    const surprise = sum(now, (d) => d.correct - d.predicted);
    const beyond = all === 0 ? null : round(surprise / all, 3);
    const plateaus = distinct(now.filter((d) => d.plateau).map(({ skillId }) => skillId)).length;
    const gain = round(
      sum(now, (d) => d.gain),
      2,
    );
    const signs = [idle >= 7, all < before / 2, (beyond ?? 0) < -0.05, plateaus >= 2, gain < 0];
    return [userId, idle, all, before, beyond, plateaus, gain, count(signs, (sign) => sign)];
  });
  return sorted(rows, down(7), down(1), column(0)).slice(0, 10);
};

const plateauList: Reckoned = ({ answers }) => {
  const recent = answers.filter(
    (a) => a.receivedAt >= today - 28 * dayMs && dayOf(a.occurredAt) > lastDay - 28,
  );
  const rows = [...groupBy(recent, (a) => `${a.userId} ${a.skillId}`).values()].flatMap((own): Cell[][] => {
    const last = sorted(own, (a) => a.learnerSeq).at(-1) as SchoolAnswer;
    const days = distinct(own.map(({ occurredAt }) => dayOf(occurredAt))).length;
    const [accuracy, rapid] = [avg(own, right, 2), avg(own, ({ isRapid }) => isRapid, 2)];
    const help = () => {
      if (rapid >= 0.2) return 'take time';
      if (accuracy < 0.4) return 'worked examples, easier items';
      return own.length >= 10 * days ? 'shorter sessions' : 'another kind of task';
    };
    if (!last.plateauDetected || own.length < 5) return [];
    const mastery = round(last.masteryAfter, 2);
    return [[last.userId, last.skillId, own.length, accuracy, mastery, rapid, days, help()]];
  });
  return sorted(rows, down(2), column(0), column(1)).slice(0, 10);
};

const learnersMonth: Reckoned = ({ answers }) => {
  const days = learnerDays(answers).filter(({ userId, day }) => userId === 'demo-001' && day > lastDay - 28);
  const rows = byLearnerSkill(days).map((own): Cell[] => {
    const [all, seconds] = [sum(own, (d) => d.answers), sum(own, (d) => d.seconds)];
    const perMinute = seconds === 0 ? null : round((60 * sum(own, (d) => d.timedCorrect)) / seconds, 2);
    const accuracy = round(sum(own, (d) => d.correct) / all, 2);
    return [own[0]?.skillId ?? '', all, accuracy, perMinute, round(own.at(-1)?.mastery ?? 0, 3)];
  });
  return sorted(rows, column(4), column(0)).slice(0, 10);
};

const learnersWay: Reckoned = ({ answers }) => {
  const rows = learnerDays(answers)
    .filter(({ userId, skillId }) => userId === 'demo-001' && skillId === skill)
    .map((d): Cell[] => {
      // As the view has it: less what the day's answers won.
      const cameWith = Math.min(1, Math.max(0, d.mastery - d.gain));
      return [dateOf(d.day), d.answers, d.correct, round(cameWith, 3), round(d.mastery, 3)];
    });
  return sorted(rows, column(0)).toReversed().slice(0, 10);
};

export const expectedPeople: Readonly<Record<string, Reckoned>> = {
  'Which items are hardest?': hardest,
  'Which items mislead? (strong learners fail)': misleading,
  'Which items of a skill are worn out? (exposure)': exposure,
  'How is a class doing on a skill? (class report)': classReport,
  'Which learners need attention now?': atRisk,
  'Who is on a plateau, and what helps?': plateauList,
  'What did a learner do in the last 28 days?': learnersMonth,
  "How did a learner's mastery of a skill move?": learnersWay,
};
