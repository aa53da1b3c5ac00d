/** Right results of the queries on goals, forecasts, the model and the data. */
import type { ServedForecast } from '../../../src/contracts/journal/journal.js';
import { distinct, groupBy } from '../../../src/lists.js';
import {
  avg,
  type Cell,
  column,
  count,
  dateOf,
  dayOf,
  down,
  mean,
  monthOf,
  type Reckoned,
  round,
  sorted,
  sum,
} from './reckon.js';
import { dayMs, type School, type SchoolAnswer, tenant, today } from './school.js';

const right = ({ isCorrect }: SchoolAnswer): boolean => isCorrect;

/** The goal in force of each learner. */
const goalsOf = (school: School) =>
  [...groupBy(school.goals, ({ change }) => change.userId).values()].flatMap((changes) => {
    const { change } = changes.at(-1) as (typeof changes)[number];
    return change.targetScore === null ? [] : [{ ...change, targetScore: change.targetScore }];
  });

const byTime = (forecasts: readonly ServedForecast[]): ServedForecast[] =>
  sorted(
    forecasts,
    ({ madeAt }) => madeAt,
    ({ days }) => days,
  );

/** Goals, each with the learner's last forecast. */
const foretold = (school: School) =>
  goalsOf(school).map((goal) => {
    const own = school.forecasts.filter(({ userId }) => userId === goal.userId);
    return { goal, last: byTime(own).at(-1) as ServedForecast };
  });

const isOver = ({ targetDate }: ReturnType<typeof goalsOf>[number]): boolean =>
  targetDate !== null && targetDate < dateOf(dayOf(today));

const standings: Reckoned = (school) => {
  const standing = ({ goal, last }: ReturnType<typeof foretold>[number]): string => {
    const probability = last.goalProbability ?? 0;
    if (last.current.total >= goal.targetScore) return '1 reached';
    if (isOver(goal)) return '2 missed';
    return probability >= 0.6 ? '3 likely' : probability >= 0.3 ? '4 open' : '5 unlikely';
  };
  const rows = [...groupBy(foretold(school), standing)].map(([name, own]): Cell[] => [
    ...[name, own.length, avg(own, ({ goal }) => goal.targetScore, 0)],
    ...[avg(own, ({ last }) => last.current.total, 0), avg(own, ({ last }) => last.goalProbability ?? 0, 2)],
  ]);
  return sorted(rows, column(0));
};

const hardestGoals: Reckoned = (school) => {
  const open = foretold(school).filter(({ goal }) => !isOver(goal));
  const rows = open.map(({ goal, last }): Cell[] => [
    ...[goal.userId, goal.targetScore, goal.targetDate, last.current.total],
    ...[round(last.goalProbability ?? 0, 3), dateOf(dayOf(last.madeAt))],
  ]);
  return sorted(rows, column(4), column(0)).slice(0, 10);
};

const goalChanges: Reckoned = ({ goals }) => {
  const changes = [...groupBy(goals, ({ change }) => change.userId).values()].flatMap((own) =>
    own.slice(1).map(({ at, change }, i) => ({ at, change, before: own[i]?.change.targetScore ?? null })),
  );
  const rows = sorted(
    changes,
    ({ at }) => -at,
    ({ change }) => change.userId,
  ).map(({ at, change, before }): Cell[] => [
    ...[change.userId, dateOf(dayOf(at)), before, change.targetScore, change.targetDate],
  ]);
  return rows.slice(0, 10);
};

/** Forecasts whose days are over, with what came. */
function outcomesOf({ answers, forecasts }: School) {
  const last = groupBy(byTime(forecasts), (f) => `${f.userId} ${dayOf(f.madeAt)} ${f.days}`);
  return [...last.values()].flatMap((made) => {
    const forecast = made.at(-1) as ServedForecast;
    const { expected, sd, reach } = forecast.accuracy;
    const after = ({ occurredAt }: SchoolAnswer): number => dayOf(occurredAt) - dayOf(forecast.madeAt);
    const own = answers.filter(
      (a) => a.userId === forecast.userId && after(a) > 0 && after(a) <= forecast.days,
    );
    if (own.length < 10) return [];
    const observed = mean(own, right);
    const spread = Math.sqrt(sd ** 2 + 1 / (4 * own.length));
    const z = (angle(observed) - angle(expected)) / spread;
    return {
      ...{ forecast, observed, expected, z },
      holds: reach.map(({ below, above }) => z >= -below && z <= above),
      widths: reach.map(
        ({ below, above }) =>
          share(angle(expected) + above * spread) - share(angle(expected) - below * spread),
      ),
      brier: mean(own, ({ isCorrect }) => (Number(isCorrect) - expected) ** 2),
    };
  });
}

const angle = (share: number): number => Math.asin(Math.sqrt(share));
const share = (angle: number): number => Math.sin(Math.min(Math.max(angle, 0), Math.PI / 2)) ** 2;

const bands = [1, 20, 50, 100, 200, 500];

const coverage: Reckoned = (school) => {
  const bandOf = ({ forecast }: ReturnType<typeof outcomesOf>[number]): number =>
    bands.findLast((from) => forecast.learnerSeq >= from) ?? 1;
  const groups = groupBy(outcomesOf(school), (of) => `${of.forecast.days} ${bandOf(of)}`);
  const rows = [...groups.values()].map((own): Cell[] => {
    const [first] = own;
    return [
      ...[first?.forecast.days ?? 0, first === undefined ? 0 : bandOf(first)],
      ...[own.length, distinct(own.map(({ forecast }) => forecast.userId)).length],
      ...[0, 1, 2].map((level) => avg(own, ({ holds }) => holds[level] === true)),
      avg(own, ({ widths }) => widths[1] ?? 0),
      round(mean(own, ({ observed }) => observed) - mean(own, ({ expected }) => expected), 3),
    ];
  });
  return sorted(rows, column(0), column(1)).slice(0, 12);
};

const bias: Reckoned = (school) => {
  const weekly = outcomesOf(school).filter(({ forecast }) => forecast.days === 7);
  const rows = [...groupBy(weekly, ({ forecast }) => monthOf(dayOf(forecast.madeAt)))].map(
    ([month, own]): Cell[] => [
      ...[month, own.length, distinct(own.map(({ forecast }) => forecast.userId)).length],
      ...[
        avg(own, ({ holds }) => holds[1] === true),
        avg(own, ({ z }) => z),
        avg(own, ({ brier }) => brier, 4),
      ],
    ],
  );
  return sorted(rows, column(0)).slice(0, 10);
};

const honesty: Reckoned = ({ forecasts }) => {
  const tracked = forecasts.filter(({ targetScore }) => targetScore !== null);
  const learners = [...groupBy(tracked, ({ userId }) => userId).values()].flatMap((own) => {
    const inTurn = byTime(own);
    const [first, last] = [inTurn[0], inTurn.at(-1)] as [ServedForecast, ServedForecast];
    if (dayOf(last.madeAt) - dayOf(first.madeAt) < 28) return [];
    return { promised: first.goalProbability ?? 0, reached: last.current.total >= (last.targetScore ?? 0) };
  });
  const rows = [...groupBy(learners, ({ promised }) => Math.floor(promised * 5) / 5)].map(
    ([band, own]): Cell[] => [
      ...[band, own.length, avg(own, ({ promised }) => promised), avg(own, ({ reached }) => reached)],
    ],
  );
  return sorted(rows, column(0));
};

const brierOf = ({ pCorrect, isCorrect }: SchoolAnswer): number => (pCorrect - Number(isCorrect)) ** 2;

const misfits: Reckoned = ({ answers }) => {
  const rows = [...groupBy(answers, ({ skillId }) => skillId)].map(([skillId, own]): Cell[] => {
    const accuracy = mean(own, right);
    const surprise = sum(own, (a) => Number(a.isCorrect) - a.pCorrect);
    const z = round(surprise / Math.sqrt(own.length * accuracy * (1 - accuracy)), 1);
    return [skillId, own.length, round(accuracy, 3), avg(own, (a) => a.pCorrect), z, avg(own, brierOf, 4)];
  });
  return sorted(rows, (row) => -Math.abs(Number(row[4])), column(0)).slice(0, 10);
};

const emptyMastery: Reckoned = ({ answers, parameters }) => {
  const newest = parameters.filter(({ version }) => version === 2);
  const rows = newest.map(({ skill_id, new_log_loss }): Cell[] => {
    const accuracy = mean(
      answers.filter(({ skillId }) => skillId === skill_id),
      right,
    );
    const alone = round(-accuracy * Math.log(accuracy) - (1 - accuracy) * Math.log(1 - accuracy), 4);
    const tracing = round(new_log_loss, 4);
    return [skill_id, tracing, alone, round(alone - tracing, 4)];
  });
  return sorted(rows, column(3), column(0)).slice(0, 10);
};

const calibration: Reckoned = ({ answers }) => {
  const rows = [...groupBy(answers, ({ pCorrect }) => Math.floor(pCorrect * 10) / 10)].map(
    ([band, own]): Cell[] => [band, own.length, avg(own, (a) => a.pCorrect), avg(own, right)],
  );
  return sorted(rows, column(0));
};

const lastVersion: Reckoned = ({ answers, parameters }) => {
  const fitted = parameters.filter(({ version, published }) => version === 2 && published === 1);
  const own = answers.filter((answer) => fitted.some(({ skill_id }) => skill_id === answer.skillId));
  const rows = [...groupBy(own, ({ version }) => version)].map(([version, of]): Cell[] => {
    const loss = avg(of, (a) => -Math.log(a.isCorrect ? a.pCorrect : 1 - a.pCorrect), 4);
    const [accuracy, brier] = [mean(of, right), avg(of, brierOf, 4)];
    const explained = round(1 - brier / (accuracy * (1 - accuracy)), 3);
    const predicted = avg(of, (a) => a.pCorrect);
    return [version, of.length, round(accuracy, 3), predicted, brier, loss, explained];
  });
  return sorted(rows, down(0));
};

const gains: Reckoned = ({ parameters }) => {
  const rows = parameters
    .filter(({ version }) => version === 2)
    .map((p): Cell[] => [
      ...[p.skill_id, p.source, p.learners, p.answers, round(p.old_log_loss, 4), round(p.new_log_loss, 4)],
      ...[round(p.old_log_loss - p.new_log_loss, 4), p.published],
    ]);
  return sorted(rows, down(6), column(0)).slice(0, 10);
};

const versionsOfSkill: Reckoned = ({ parameters }) =>
  parameters
    .filter(({ skill_id }) => skill_id === 'linear-equations')
    .map((p) => [
      ...[p.version, p.source, round(p.p_init, 3), round(p.p_learn, 3), round(p.p_guess, 3)],
      ...[round(p.p_slip, 3), p.learners, p.published],
    ]);

const inForce: Reckoned = ({ versions, parameters }) =>
  versions.toReversed().map(({ change, version, action, based_on }) => {
    const own = parameters.filter((of) => of.version === version);
    const fitted = count(own, ({ published }) => published === 1);
    return [change, version, action, based_on, fitted, own.length - fitted];
  });

const quality: Reckoned = ({ answers }) => {
  const checks: readonly (readonly [what: string, isSo: (answer: SchoolAnswer) => boolean])[] = [
    ['answers', (a) => a.tenant === tenant],
    ['no item', (a) => a.itemId === null],
    ['no event id', (a) => a.eventId === null],
    ['no time', (a) => a.timeSpentSeconds === null],
    ['time of 0 s or above an hour', (a) => a.timeSpentSeconds === 0 || (a.timeSpentSeconds ?? 0) > 3600],
    ['no confidence', (a) => a.confidenceScore === null],
    ['before their time', (a) => a.occurredAt > a.receivedAt],
  ];
  return checks.map(([what, isSo]) => [what, count(answers, isSo), avg(answers, isSo, 4)]);
};

const lateness: Reckoned = ({ answers }) => {
  const behind = [...groupBy(answers, ({ userId }) => userId).values()].flatMap((own) => {
    let latest = 0;
    return sorted(own, (a) => a.learnerSeq).map((answer) => {
      latest = Math.max(latest, answer.occurredAt);
      return { answer, seconds: (latest - answer.occurredAt) / 1000 };
    });
  });
  const nameOf = (seconds: number): string => {
    if (seconds === 0) return '0 in order';
    if (seconds <= 3600) return '1 up to an hour';
    if (seconds <= 86_400) return '2 up to a day';
    return seconds <= 7 * 86_400 ? '3 up to a week' : '4 more';
  };
  const rows = [...groupBy(behind, ({ seconds }) => nameOf(seconds))].map(([name, own]): Cell[] => [
    ...[name, own.length, distinct(own.map(({ answer }) => answer.userId)).length],
    avg(own, ({ answer }) => answer.isCorrect),
  ]);
  return sorted(rows, column(0));
};

const twice: Reckoned = ({ answers }) => {
  const recent = answers.filter(
    ({ itemId, receivedAt }) => itemId !== null && receivedAt >= today - 28 * dayMs,
  );
  const rows = [...groupBy(recent, (a) => `${a.userId} ${a.itemId}`).values()].flatMap((own) => {
    const inTurn = sorted(own, (a) => a.learnerSeq);
    return inTurn.slice(1).flatMap((answer, i): Cell[][] => {
      const after = (answer.occurredAt - (inTurn[i] as SchoolAnswer).occurredAt) / 1000;
      const at = new Date(answer.occurredAt).toISOString().replace('T', ' ').replace('Z', '');
      return after >= 0 && after <= 10 ? [[answer.userId, answer.itemId, at, after]] : [];
    });
  });
  return sorted(rows, (row) => -Date.parse(`${row[2]}Z`), column(0)).slice(0, 10);
};

const unpractised: Reckoned = ({ answers, catalogue }) => {
  const rows = catalogue.map(({ change }): Cell[] => {
    const own = answers.filter(({ skillId, occurredAt }) => {
      return skillId === change.skillId && dayOf(occurredAt) > dayOf(today) - 28;
    });
    return [change.skillId, change.name, change.section, change.weight, own.length];
  });
  return sorted(rows, column(4), column(0)).slice(0, 10);
};

const agreement: Reckoned = ({ answers }) => [[answers.length, answers.length, answers.length]];

export const expectedModel: Readonly<Record<string, Reckoned>> = {
  'Who reaches the goal?': standings,
  'Which goals look hardest to reach?': hardestGoals,
  'Who changed a goal?': goalChanges,
  'Do forecasts keep their promise? (calibration)': coverage,
  'Do forecasts get better or worse?': bias,
  'Is the probability of a goal honest?': honesty,
  'Which skills does the model not fit?': misfits,
  'On which skills does mastery say nothing?': emptyMastery,
  'Are predictions true? (calibration)': calibration,
  'What did the last version of the model change?': lastVersion,
  'Which skills gained most by the last fit?': gains,
  "How did a skill's parameters change?": versionsOfSkill,
  'Which versions were in force?': inForce,
  'What is missing?': quality,
  'How late do answers come?': lateness,
  'What was counted twice?': twice,
  'Which skills of the catalogue are practised least?': unpractised,
  'Do the daily sums agree with the answers?': agreement,
};
