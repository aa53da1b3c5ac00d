/** What a teacher would expect of each learner of the panel, and why. */

export type Range = readonly [low: number, high: number];

/** What a teacher would expect of one learner; all scores are totals, goals are 1200 within a year. */
export interface Band {
  readonly why: string;
  readonly current: Range;
  /** Change of the prediction against the current score. */
  readonly in30: Range;
  readonly in120: Range;
  /** Of the interval in 30 days. */
  readonly width: Range;
  /** Whether 1200 is reached within a year; left out where either may be said. */
  readonly onTrack?: boolean;
  /** Codes of which one at least is advised. */
  readonly advice?: readonly string[];
  readonly momentum?: string;
  /** Where it differs in the tenant with a fit, and why. */
  readonly fitted?: Partial<Omit<Band, 'fitted'>> & Pick<Band, 'why'>;
}

const unknown: Range = [380, 620];
const known: Range = [200, 450];

export const bands: Readonly<Record<string, Band>> = {
  'beginner, 3 of 4 right': {
    why: 'four answers say next to nothing: the population, and wide',
    current: [990, 1110],
    in30: [-20, 30],
    in120: [-30, 60],
    width: unknown,
    onTrack: false,
  },
  'one right answer': {
    why: 'as the beginner',
    current: [1000, 1100],
    in30: [-20, 30],
    in120: [-30, 60],
    width: unknown,
    onTrack: false,
  },
  strong: {
    why: '90 % of 120 answers right is well above the mean, but eight skills are not all: no 1500',
    current: [1150, 1400],
    in30: [0, 70],
    in120: [0, 150],
    width: known,
    onTrack: true,
    momentum: 'building',
  },
  weak: {
    why: '30 % right is little more than chance',
    current: [680, 920],
    in30: [0, 90],
    in120: [0, 200],
    width: known,
    onTrack: false,
    advice: ['WEAK_SKILL', 'PLATEAU'],
  },
  average: {
    why: '55 % right is what mastery of one half comes to with guess .2 and slip .1',
    current: [950, 1130],
    in30: [0, 80],
    in120: [0, 200],
    width: known,
    advice: ['WEAK_SKILL', 'PLATEAU', 'READY', 'EXPLORE'],
  },
  guesser: {
    why: 'chance in two seconds: low, and nothing is learned that way',
    current: [680, 920],
    in30: [-20, 40],
    in120: [-20, 90],
    width: known,
    onTrack: false,
    advice: ['RAPID'],
  },
  'crammer on one skill': {
    why: 'forty answers on one skill say little of the section, and nothing of 20 others',
    current: [1020, 1170],
    in30: [-40, 40],
    in120: [-60, 80],
    width: unknown,
  },
  'stopped two months ago': {
    why: '80 % right, above the mean; who does not practise does not gain',
    current: [1040, 1280],
    in30: [-50, 0],
    in120: [-120, 0],
    width: known,
    onTrack: false,
  },
  improver: {
    why: '62 % right over all, better of late, ten answers a day: on the way up',
    current: [1000, 1220],
    in30: [0, 90],
    in120: [20, 220],
    width: known,
    onTrack: true,
    momentum: 'building',
  },
  'one section only': {
    why: '75 % right on all of a section; the other one is borrowed where it is known to be another',
    current: [1060, 1330],
    in30: [0, 80],
    in120: [0, 180],
    width: known,
  },
  'few of many': {
    why: 'sixty answers, three in four right, but on two skills',
    current: [1010, 1160],
    in30: [-30, 50],
    in120: [-30, 110],
    width: unknown,
  },
  'everything wrong': {
    why: 'forty wrong answers: far down, with much room',
    current: [480, 760],
    in30: [0, 110],
    in120: [0, 230],
    width: known,
    onTrack: false,
    advice: ['WEAK_SKILL'],
  },
  'everything right': {
    why: 'sixty right answers on twenty skills: near the top, not all of it',
    current: [1350, 1590],
    in30: [-40, 60],
    in120: [-80, 90],
    width: known,
    onTrack: true,
  },
  'long history': {
    why: '70 % right of 1,200 answers on twenty skills: above the mean, and known well',
    current: [1100, 1330],
    in30: [0, 60],
    in120: [0, 150],
    width: known,
    onTrack: true,
    fitted: { why: 'fitted parameters are trusted in full', width: [150, 450] },
  },
  '300 answers on one day': {
    why: '80 % right: known well today; a few such days in fourteen are many answers, and partly forgotten between',
    current: [1150, 1420],
    in30: [-100, 80],
    in120: [-200, 180],
    width: known,
    fitted: { why: 'fitted parameters are trusted in full', width: [150, 450] },
  },
  'stuck on one skill': {
    why: '40 % right on one skill, ten days long: below the mean, little known',
    current: [850, 1050],
    in30: [-20, 60],
    in120: [-20, 120],
    width: unknown,
    onTrack: false,
    advice: ['PLATEAU'],
  },
};
