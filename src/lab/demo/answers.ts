/**
 * What the demo's learners answer: knowledge that is gained by practice and forgotten in idle weeks, and what shows of it.
 * It is no BKT model: questions differ, ability shines through, and some skills go their own way.
 */
import {
  type Answer,
  clamp,
  dayMs,
  logit,
  type Section,
  sections,
  sigmoid,
} from '../../domain/base/common.js';
import { indices } from '../../lists.js';
import { type DemoItem, type DemoLearner, type DemoSkill, type Draws, sectionSkills } from './school.js';

export interface DemoAnswer extends Answer {
  readonly userId: string;
  readonly skillId: string;
  readonly itemId: string | null;
  readonly eventId: string | null;
  /** Unix milliseconds: when it reached the platform. */
  readonly sentAt: number;
}

/** What a learner knows of a skill. */
interface Knowledge {
  /** Of both halves of its questions, which are one skill unless it is an odd one. */
  readonly knows: [boolean, boolean];
  /** Practice teaches nothing any more. */
  readonly stuck: boolean;
  answers: number;
  lastAt: number;
}

const minute = 60_000;
const hour = 60 * minute;

/** How much of the usual is done in a week: holidays, and weeks before a test of the school. */
function weekFactor(monday: number): number {
  const day = new Date(monday + 3 * dayMs).toISOString().slice(5, 10);
  if (day >= '12-21' || day <= '01-04') return 0.15;
  if (day >= '07-01' && day <= '08-31') return 0.3;
  if (day >= '04-03' && day <= '04-09') return 0.25;
  return isTestWeek(monday) ? 1.4 : 1;
}

const testEveryWeeks = 9;
/** The school's tests are on Saturdays, whatever the first day of the demo is. */
export const isTestWeek = (monday: number): boolean =>
  Math.floor((monday + 3 * dayMs) / (7 * dayMs)) % testEveryWeeks === 4;

/** All answers of a learner, in the order in which they were given. */
export function answersOf(learner: DemoLearner, skills: readonly DemoSkill[], draws: Draws): DemoAnswer[] {
  const student = createStudent(learner, skills, draws);
  const all: DemoAnswer[] = [];
  for (let monday = learner.from; monday < learner.to; monday += 7 * dayMs)
    for (const { at, answers } of drawSessions(learner, monday, draws)) {
      if (at < (all.at(-1)?.occurredAt ?? 0) + hour || at >= learner.to) continue;
      // A device without network sends a session when it is back.
      const late = learner.device === 'offline' && draws.chance(0.25) ? draws.between(1, 4) * dayMs : 0;
      all.push(...student.work(at, answers, Math.round(late)));
    }
  return all;
}

interface Session {
  readonly at: number;
  readonly answers: number;
}

function drawSessions(learner: DemoLearner, monday: number, draws: Draws): Session[] {
  const factor = weekFactor(monday);
  const comes = monday === learner.from || draws.chance(learner.weeks * Math.min(1, 2 * factor));
  const count = comes ? Math.max(1, Math.round(learner.sessions * factor * draws.between(0.5, 1.5))) : 0;
  const usual = indices(count).map(() => ({
    at: timeOn(monday + draws.whole(0, 6) * dayMs, draws),
    answers: Math.max(3, Math.round(draws.normal(learner.answers, 3))),
  }));
  if (!learner.crams || !isTestWeek(monday)) return usual.sort((a, b) => a.at - b.at);
  const cram = [3, 4].map((day) => ({
    at: timeOn(monday + day * dayMs, draws),
    answers: draws.whole(30, 60),
  }));
  return [...usual, ...cram].sort((a, b) => a.at - b.at);
}

/** From eight in the morning to six in the evening, so that nobody works into the next day. */
const timeOn = (day: number, draws: Draws): number => day + Math.round(draws.between(8, 18) * hour);

function createStudent(learner: DemoLearner, skills: readonly DemoSkill[], draws: Draws) {
  const knowledge = new Map<DemoSkill, Knowledge>();
  /** Where the learner stands in each section, and answers until the next skill. */
  const places = sections.map((section) => {
    const own = sectionSkills(skills, section);
    const start = Math.round(clamp(draws.normal(3 + 3 * learner.ability, 2.5), 0, own.length - 6));
    return { section, own, start, at: start, left: draws.whole(8, 14) };
  });
  const mathShare = draws.between(0.35, 0.7);
  let number = 0;

  function knowledgeOf(skill: DemoSkill): Knowledge {
    const found = knowledge.get(skill);
    if (found !== undefined) return found;
    const knows = () => draws.chance(sigmoid(skill.easiness + learner.ability));
    const both = knows();
    const fresh: Knowledge = {
      knows: [both, skill.oddity === 'double' ? knows() : both],
      stuck: skill.oddity === 'unteachable' || (learner.stuck && draws.chance(0.6)),
      ...{ answers: 0, lastAt: 0 },
    };
    knowledge.set(skill, fresh);
    return fresh;
  }

  /** Mostly the skill of the day, then those of the last weeks, now and then any earlier one. */
  function nextSkill(section: Section): DemoSkill {
    const place = places.find((one) => one.section === section) as (typeof places)[number];
    const last = place.own.length - 1;
    const back = draws.chance(0.68) ? 0 : draws.chance(0.7) ? draws.whole(1, 4) : draws.whole(1, last);
    const skill = place.own[Math.max(place.start, place.at - back)] as DemoSkill;
    if (back === 0 && --place.left <= 0) {
      place.at = place.at < last ? place.at + 1 : place.start;
      place.left = draws.whole(8, 14);
    }
    return skill;
  }

  function answer(skill: DemoSkill, occurredAt: number, late: number): DemoAnswer {
    const item = draws.pick(skill.items);
    const known = knowledgeOf(skill);
    const half = skill.items.indexOf(item) % 2;
    forget(known, occurredAt);
    const rapid = draws.chance(learner.rapid);
    const p = rapid ? 0.25 : chanceOf(skill, item, known, half);
    const isCorrect = draws.chance(p);
    const seconds = rapid ? draws.whole(1, 2) : solutionTime(skill, known.knows[half] as boolean, isCorrect);
    if (!rapid) learn(skill, known, half);
    known.answers += 1;
    known.lastAt = occurredAt;
    number += 1;
    const isOld = learner.device === 'old';
    return {
      ...{ userId: learner.userId, skillId: skill.id, isCorrect, occurredAt, sentAt: occurredAt + late },
      itemId: isOld && draws.chance(0.05) ? null : item.id,
      eventId: isOld ? null : `${learner.userId}-${number}`,
      questionDifficulty: item.rated,
      timeSpentSeconds: draws.chance(0.02) ? null : seconds,
      confidenceScore: confidenceOf(p),
    };
  }

  function forget(known: Knowledge, at: number): void {
    const idle = Math.max(0, (at - known.lastAt) / dayMs - 2);
    if (known.answers === 0 || idle === 0) return;
    if (draws.chance(1 - Math.exp(-learner.forgets * idle))) known.knows.fill(false);
  }

  function chanceOf(skill: DemoSkill, item: DemoItem, known: Knowledge, half: number): number {
    if (item.misleading) return known.knows[half] ? 0.3 : 0.4;
    const own = 0.4 * learner.ability - 0.9 * item.difficulty;
    if (skill.oddity === 'unteachable') return sigmoid(0.1 + own);
    const dip = skill.oddity === 'dip' && known.answers >= 4 && known.answers < 14 ? 1.8 : 0;
    return sigmoid((known.knows[half] ? skill.known : skill.guess) + own - dip);
  }

  function learn({ oddity }: DemoSkill, known: Knowledge, half: number): void {
    if (known.stuck || !draws.chance(0.15 * learner.learning)) return;
    known.knows[half] = true;
    if (oddity !== 'double') known.knows.fill(true);
  }

  function solutionTime({ logTime }: DemoSkill, knows: boolean, isCorrect: boolean): number {
    if (draws.chance(0.002)) return draws.whole(3700, 9000);
    const mean = logTime - (knows ? 0.2 : 0) + (isCorrect ? 0 : 0.1) - 0.1 * learner.ability;
    return Math.round(clamp(Math.exp(draws.normal(mean, 0.45)), 5, 900));
  }

  function confidenceOf(p: number): number | null {
    if (learner.sure === null || draws.chance(0.15)) return null;
    return Math.round(clamp(draws.normal(3 + 0.9 * logit(p) + learner.sure, 0.7), 1, 5));
  }

  return {
    /** A session on one section, two times of three; @param late milliseconds until it is sent */
    work: (from: number, count: number, late: number): DemoAnswer[] => {
      const main: Section = draws.chance(mathShare) ? 'math' : 'rw';
      let at = from;
      return indices(count).flatMap(() => {
        const section = draws.chance(0.85) ? main : draws.pick(sections);
        const made = answer(nextSkill(section), at, late);
        at += Math.min(15 * minute, 1000 * ((made.timeSpentSeconds ?? 60) + draws.whole(3, 20)));
        return learner.device === 'old' && draws.chance(0.02) ? [made, made] : [made];
      });
    },
  };
}
