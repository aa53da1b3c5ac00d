/** A panel of made-up learners, each with the forecasts that a teacher would expect. Only the order of answers is random. */
import { dayMs } from '../../../src/domain/base/common.js';
import { createNormal, seeded } from './random.js';

/** Answers of one learner within one day. */
interface Session {
  readonly daysAgo: number;
  readonly skills: readonly string[];
  readonly answers: number;
  /** Exact share of correct answers. */
  readonly share: number;
  readonly seconds?: number;
}

export type Range = readonly [low: number, high: number];

/** All scores are totals. The goal is 1200 within a year. */
export interface PanelLearner {
  readonly name: string;
  readonly sessions: readonly Session[];
  readonly current: Range;
  /** Forecast less the current total. */
  readonly in30: Range;
  readonly in120: Range;
  /** Width of the interval in 30 days, and in the tenant with a fit. */
  readonly width: Range;
  readonly fittedWidth?: Range;
  readonly onTrack?: boolean;
  /** At least one of these recommendation codes. */
  readonly advice?: readonly string[];
  readonly momentum?: string;
}

const numbered = (stem: string): string[] => Array.from({ length: 10 }, (_, i) => `${stem}-${i + 1}`);

export const mathSkills = numbered('algebra');
export const readingSkills = numbered('reading');

const few = [...mathSkills.slice(0, 4), ...readingSkills.slice(0, 4)];
const all = [...mathSkills, ...readingSkills];

/** @param until days since the newest session @param every days between two sessions */
const days = (count: number, session: Omit<Session, 'daysAgo'>, until = 0, every = 1): Session[] =>
  Array.from({ length: count }, (_, i) => ({ ...session, daysAgo: until + every * (count - 1 - i) }));

const uncertain: Range = [380, 620];
const certain: Range = [200, 450];
const fittedWidth: Range = [150, 450];

const learners: Readonly<Record<string, Omit<PanelLearner, 'name'>>> = {
  // Few answers: near the population's mean, with a wide interval.
  'beginner, 3 of 4 right': {
    sessions: days(1, { skills: few.slice(3, 5), answers: 4, share: 0.75 }),
    ...{ current: [990, 1110], in30: [-20, 30], in120: [-30, 60], width: uncertain, onTrack: false },
  },
  'one right answer': {
    sessions: days(1, { skills: few, answers: 1, share: 1 }),
    ...{ current: [1000, 1100], in30: [-20, 30], in120: [-30, 60], width: uncertain, onTrack: false },
  },
  // Far above the mean, but eight skills are not all skills.
  strong: {
    sessions: days(12, { skills: few, answers: 10, share: 0.9 }, 0, 2),
    ...{ current: [1150, 1400], in30: [0, 70], in120: [0, 150], width: certain, onTrack: true },
    momentum: 'building',
  },
  // Little better than chance.
  weak: {
    sessions: days(12, { skills: few, answers: 10, share: 0.3 }, 0, 2),
    ...{ current: [680, 920], in30: [0, 90], in120: [0, 200], width: certain, onTrack: false },
    advice: ['WEAK_SKILL', 'PLATEAU'],
  },
  // A mastery of one half with guess .2 and slip .1.
  average: {
    sessions: days(20, { skills: few, answers: 10, share: 0.55 }),
    ...{ current: [950, 1130], in30: [0, 80], in120: [0, 200], width: certain },
    advice: ['WEAK_SKILL', 'PLATEAU', 'READY', 'EXPLORE'],
  },
  guesser: {
    sessions: days(10, { skills: few, answers: 10, share: 0.25, seconds: 1.5 }),
    ...{ current: [680, 920], in30: [-20, 40], in120: [-20, 90], width: certain, onTrack: false },
    advice: ['RAPID'],
  },
  // One skill says little about its section and nothing about the others.
  'crammer on one skill': {
    sessions: days(1, { skills: few.slice(0, 1), answers: 40, share: 0.95 }),
    ...{ current: [1020, 1170], in30: [-40, 40], in120: [-60, 80], width: uncertain },
  },
  // Without practice there is no gain.
  'stopped two months ago': {
    sessions: days(15, { skills: few, answers: 10, share: 0.8 }, 60),
    ...{ current: [1040, 1280], in30: [-50, 0], in120: [-120, 0], width: certain, onTrack: false },
  },
  improver: {
    sessions: Array.from({ length: 20 }, (_, i) => ({
      daysAgo: 19 - i,
      skills: few,
      answers: 10,
      share: 0.4 + (i >> 1) * 0.05,
    })),
    ...{ current: [1000, 1220], in30: [0, 90], in120: [20, 220], width: certain, onTrack: false },
    momentum: 'building',
  },
  'one section only': {
    sessions: days(10, { skills: mathSkills, answers: 10, share: 0.75 }),
    ...{ current: [1060, 1330], in30: [0, 80], in120: [0, 180], width: certain },
  },
  'few of many': {
    sessions: days(10, { skills: few.slice(3, 5), answers: 6, share: 0.75 }),
    ...{ current: [1010, 1160], in30: [-30, 50], in120: [-30, 110], width: uncertain },
  },
  'everything wrong': {
    sessions: days(4, { skills: few, answers: 10, share: 0 }),
    ...{ current: [480, 760], in30: [0, 110], in120: [0, 230], width: certain, onTrack: false },
    advice: ['WEAK_SKILL'],
  },
  'everything right': {
    sessions: days(6, { skills: all, answers: 10, share: 1 }),
    ...{ current: [1350, 1590], in30: [-40, 60], in120: [-80, 90], width: certain, onTrack: true },
  },
  'long history': {
    sessions: days(150, { skills: all, answers: 8, share: 0.7 }),
    ...{ current: [1100, 1330], in30: [0, 60], in120: [0, 150], width: certain, fittedWidth },
  },
  // Partly forgotten until the next day of practice.
  '300 answers on one day': {
    sessions: days(1, { skills: all, answers: 300, share: 0.8 }),
    ...{ current: [1150, 1420], in30: [-100, 80], in120: [-200, 180], width: certain, fittedWidth },
  },
  'stuck on one skill': {
    sessions: days(10, { skills: few.slice(0, 1), answers: 6, share: 0.4 }),
    ...{ current: [850, 1050], in30: [-20, 60], in120: [-20, 120], width: uncertain, onTrack: false },
    advice: ['PLATEAU'],
  },
};

export const panel: readonly PanelLearner[] = Object.entries(learners).map(([name, learner]) => ({
  name,
  ...learner,
}));

const minuteMs = 60_000;

/**
 * A learner's answers, oldest first. They are a minute apart, or less if a session would begin before midnight: a session on
 * two days has another momentum.
 *
 * @param now Unix milliseconds. The newest answers are at most a minute older.
 */
export function eventsOf({ name, sessions }: PanelLearner, now: number) {
  const random = seeded([...name].reduce((sum, letter) => 31 * sum + letter.charCodeAt(0), 7) | 0);
  let place = 0;
  return sessions.flatMap(({ daysAgo, skills, answers, share, seconds = 50 }) => {
    const right = Math.round(answers * share);
    const outcomes = shuffle([...Array(right).fill(true), ...Array(answers - right).fill(false)], random);
    const stepMs = Math.min(minuteMs, (now % dayMs) / (answers + 1));
    return outcomes.map((isCorrect, i) => ({
      user_id: name,
      skill_id: skills[place++ % skills.length] as string,
      is_correct: isCorrect,
      time_spent_seconds: Math.round(seconds * (0.6 + 0.8 * random())),
      occurred_at: new Date(now - daysAgo * dayMs - (answers - i) * stepMs).toISOString(),
    }));
  });
}

function shuffle<T>(items: T[], random: () => number): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
  return items;
}

/**
 * Rows of 300 learners who differ in ability and a little by skill, and improve with practice. No learner masters a skill in
 * one step, so a fit finds realistic parameters.
 */
export function schoolAnswers(tenant: string, perSkill: number): object[] {
  const random = seeded(300);
  const normal = createNormal(random);
  const skills = all.map((skillId) => ({ skillId, difficulty: 0.5 * normal() }));
  const start = Date.UTC(2026, 0, 15, 12) / 1000;
  return Array.from({ length: 300 }, (_, learner) => {
    const ability = normal();
    return skills.flatMap(({ skillId, difficulty }, skill) => {
      const own = ability + 0.5 * normal() - difficulty;
      return Array.from({ length: perSkill }, (_, i) => ({
        ...{ tenant, user_id: `learner-${learner}`, skill_id: skillId },
        is_correct: random() < 0.2 + 0.8 / (1 + Math.exp(-1.2 * (own + 0.05 * i))) ? 1 : 0,
        time_spent_seconds: 20 + Math.floor(60 * random()),
        occurred_at: start + 60 * (perSkill * skill + i),
        ...{ received_at: start, learner_seq: perSkill * skill + i + 1 },
      }));
    });
  }).flat();
}
