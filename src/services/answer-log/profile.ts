import { setRecentlyUsed } from '../../store/redis/commands/recently-used.js';
import type { LogRow } from './log-rows.js';
import type { FileAnswer } from './rows.js';

/** What a file contains. */
export type LogProfile = ReturnType<ReturnType<typeof createProfile>['read']>;

type AnswerRow = Extract<LogRow, { readonly answer: FileAnswer }>;

const maxRecentLearners = 50_000;
/** Fewer answers do not determine the parameters of a skill. */
const minSkillAnswers = 20;
const maxInvalidShare = 0.05;
/** No usual log is older. A wrong unit or start gives times near 1970. */
const earliestUsual = Date.UTC(2000, 0, 1);

const formatDay = (ms: number | null): string => new Date(ms ?? 0).toISOString().slice(0, 10);

/** Memory grows with learners, skills and items, not with rows. */
export function createProfile() {
  const [learners, items] = [new Set<string>(), new Set<string>()];
  const skills = new Map<string, number>();
  const leftOut = new Map<string, number>();
  const recent = new Map<string, AnswerRow>();
  const counts = {
    ...{ answers: 0, right: 0, severalSkills: 0, invalid: 0 },
    ...{ sameRow: 0, otherSkill: 0, order: 0, time: 0 },
  };
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];

  function compareWithPrevious(row: AnswerRow): void {
    const { answer } = row;
    const previous = recent.get(answer.userId);
    setRecentlyUsed(recent, answer.userId, row, maxRecentLearners);
    // A row with counts has several answers.
    if (previous === undefined || previous.line === row.line) return;
    const before = previous.answer;
    if (isBefore(answer.order, before.order)) counts.order++;
    if (isBefore(answer.at, before.at)) counts.time++;
    if (!isSameMoment(answer, before)) return;
    if (answer.skillIds.join() === before.skillIds.join()) counts.sameRow++;
    else counts.otherSkill++;
  }

  return {
    add: (row: LogRow): void => {
      if (row.answer === null) {
        leftOut.set(row.reason, (leftOut.get(row.reason) ?? 0) + 1);
        if (!row.isFiltered) counts.invalid++;
        return;
      }
      const { answer } = row;
      counts.answers++;
      if (answer.isCorrect) counts.right++;
      if (answer.skillIds.length > 1) counts.severalSkills++;
      learners.add(answer.userId);
      if (answer.itemId !== null) items.add(answer.itemId);
      for (const skill of answer.skillIds) skills.set(skill, (skills.get(skill) ?? 0) + 1);
      if (answer.at !== null) [from, to] = [Math.min(from, answer.at), Math.max(to, answer.at)];
      compareWithPrevious(row);
    },
    /** @param rows of the file */
    read: (rows: number) => ({
      ...{ rows, answers: counts.answers, severalSkills: counts.severalSkills },
      ...{ learners: learners.size, skills: skills.size, items: items.size },
      /** Null without answers. */
      correctShare: counts.answers === 0 ? null : counts.right / counts.answers,
      /** Unix milliseconds; null without times. */
      from: Number.isFinite(from) ? from : null,
      to: Number.isFinite(to) ? to : null,
      /** Rows without an answer, except those that a rule leaves out. */
      invalid: counts.invalid,
      /** Rows by reason. */
      leftOut: Object.fromEntries(leftOut),
      /** Rows that are earlier than the learner's previous row, by `order` or by time. */
      backwards: { order: counts.order, time: counts.time },
      /** Equal to the learner's previous row, and with only another skill. */
      repeated: { same: counts.sameRow, otherSkill: counts.otherSkill },
      rareSkills: [...skills.values()].filter((answers) => answers < minSkillAnswers).length,
    }),
  };
}

const isBefore = (value: number | null, previous: number | null): boolean =>
  value !== null && previous !== null && value < previous;

/** Of one item, at one time. Without times or orders, rows cannot be compared. */
const isSameMoment = (a: FileAnswer, b: FileAnswer): boolean =>
  a.itemId === b.itemId &&
  a.isCorrect === b.isCorrect &&
  a.at === b.at &&
  a.order === b.order &&
  (a.at ?? a.order) !== null;

/** @returns likely mistakes, and what to do */
export function buildWarnings(profile: LogProfile): string[] {
  const { rows, answers, learners, skills, ...found } = profile;
  const { correctShare, from, backwards, repeated, rareSkills, invalid } = found;
  const isOneClass = correctShare === 0 || correctShare === 1;
  const result = correctShare === 1 ? 'correct' : 'incorrect';
  const late = Math.max(backwards.order, backwards.time);
  const warnings: readonly (readonly [applies: boolean, text: string])[] = [
    [answers === 0, 'No row has a valid answer'],
    [learners === 1, 'All answers are of one learner. Check the column user_id'],
    [isOneClass, `All answers are ${result}. Check --correct-values and --incorrect-values`],
    [
      late > 0,
      `${late} rows are earlier than the learner's previous row. Sort the file by time, or pass --sort-by COLUMN`,
    ],
    [repeated.same > 0, `${repeated.same} rows repeat the learner's previous row. They count as answers`],
    [
      repeated.otherSkill > 0,
      `${repeated.otherSkill} rows differ from the learner's previous row only in the skill. If they are one answer, write one row with the skills joined by ~~`,
    ],
    [
      from !== null && from < earliestUsual,
      `The first time is ${formatDay(from)}. Check --time-format, --start and the column of ts`,
    ],
    [invalid > maxInvalidShare * rows, `${invalid} of ${rows} rows are invalid. Check the reasons`],
    [rareSkills > 0, `${rareSkills} of ${skills} skills have fewer than ${minSkillAnswers} answers`],
  ];
  return warnings.flatMap(([applies, text]) => (applies ? [text] : []));
}
