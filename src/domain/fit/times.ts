import type { AnswerLog } from '../base/answer-log.js';
import { rapidModel } from '../base/params.js';
import { noTimes, type SkillTimes } from '../tracing/pace.js';
import { rapidThreshold } from '../tracing/rapid.js';

/** Whether a time is a solution time: 0 is none, nor is one so long that the learner had left. */
const isTime = (seconds: number): boolean => seconds > 0 && seconds <= rapidModel.awaySeconds;

/**
 * Solution times of every skill. Rapid answers are left out, by the threshold that the skill's times have with them
 * in: one more round would change it by at most the rapid answers' share.
 */
export function measureTimes(log: AnswerLog): SkillTimes[] {
  const all = gather(log, () => 0);
  return gather(log, (skill) => rapidThreshold(all[skill] ?? null));
}

/** Welford's running mean and sum of squares, of ln seconds; seconds below 1 count as 1. */
function gather({ skill, seconds, skills }: AnswerLog, rapidBelow: (skill: number) => number): SkillTimes[] {
  const thresholds = Array.from({ length: skills }, (_, k) => rapidBelow(k));
  const times = thresholds.map(() => ({ ...noTimes }));
  for (const [place, value] of seconds.entries()) {
    const k = skill[place] as number;
    if (!isTime(value) || value < (thresholds[k] as number)) continue;
    addTime(times[k] as Mutable<SkillTimes>, value);
  }
  return times;
}

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

function addTime(times: Mutable<SkillTimes>, seconds: number): void {
  times.answers++;
  times.meanSeconds += (seconds - times.meanSeconds) / times.answers;
  const log = Math.log(Math.max(seconds, 1));
  const deviation = log - times.logMean;
  times.logMean += deviation / times.answers;
  times.logM2 += deviation * (log - times.logMean);
}
