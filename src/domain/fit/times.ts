import type { AnswerLog } from '../base/answer-log.js';
import { rapidModel } from '../base/params.js';
import { noTimes, rapidThreshold, type SkillTimes } from '../tracing/pace.js';

/**
 * Solution times of every skill without rapid answers, by the threshold that the times have with them in: one more
 * round would change it by at most the rapid answers' share.
 */
export function measureTimes(log: AnswerLog): SkillTimes[] {
  const all = gather(log, () => 0);
  return gather(log, (skill) => rapidThreshold(all[skill] ?? null));
}

/** Welford's running moments of ln seconds, at least 1. 0 is no time, nor is one so long that the learner had left. */
function gather({ skill, seconds, skills }: AnswerLog, rapidBelow: (skill: number) => number): SkillTimes[] {
  const own = Array.from({ length: skills }, (_, k) => ({ times: { ...noTimes }, from: rapidBelow(k) }));
  for (const [place, value] of seconds.entries()) {
    const { times, from } = own[skill[place] as number] as (typeof own)[number];
    if (!(value > 0 && value <= rapidModel.awaySeconds) || value < from) continue;
    times.answers++;
    times.meanSeconds += (value - times.meanSeconds) / times.answers;
    const log = Math.log(Math.max(value, 1));
    const deviation = log - times.logMean;
    times.logMean += deviation / times.answers;
    times.logM2 += deviation * (log - times.logMean);
  }
  return own.map(({ times }) => times);
}
