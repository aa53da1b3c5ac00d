/**
 * `npm run bench -- --next-items [learners] [world,world]`: answers until simulated learners truly master 40
 * skills, by policy. Deterministic.
 */

import { formatTable } from '../../src/lab/report/format.js';
import { StartError } from '../../src/lifecycle.js';
import { indices } from '../../src/lists.js';
import { mean, sumSquares } from '../results/spread.js';
import { fitSchool, unfitted } from './fit-school.js';
import { type Course, maxAnswers, policies, runStudy } from './study.js';
import { drawBank, drawLearner, type World, worlds } from './world.js';

const seeds = [1, 2, 3];

/** @throws StartError */
export async function main(argv: readonly string[], progress: (text: string) => void): Promise<void> {
  const learners = Number(argv[0] ?? 8);
  if (!Number.isInteger(learners) || learners < 1 || learners > 10_000)
    throw new StartError(`Learners per school ${JSON.stringify(argv[0])} must be an integer from 1 to 10000`);
  for (const name of argv[1]?.split(',') ?? Object.keys(worlds)) {
    const world = worlds[name];
    if (world === undefined)
      throw new StartError(`World ${JSON.stringify(name)} must be one of ${Object.keys(worlds).join(', ')}`);
    for (const isFitted of [false, true]) {
      const kind = `${name}, ${isFitted ? 'fitted' : 'default parameters'}`;
      const courses = await runWorld(world, learners, isFitted, (text) => progress(`${kind}: ${text}`));
      progress('');
      process.stdout.write(`${kind}: ${world.about}\n${formatCourses(courses)}\n\n`);
    }
  }
}

type Courses = ReadonlyMap<string, readonly (readonly Course[])[]>;

async function runWorld(
  world: World,
  learners: number,
  isFitted: boolean,
  progress: (text: string) => void,
): Promise<Courses> {
  const courses = new Map(Object.keys(policies).map((name) => [name, [] as Course[][]]));
  for (const seed of seeds) {
    progress(`school ${seed} of ${seeds.length}`);
    const served = isFitted ? await fitSchool(world, seed) : unfitted;
    const bank = drawBank(world, seed);
    for (const [name, policy] of Object.entries(policies)) {
      progress(`school ${seed} of ${seeds.length}, ${name}`);
      const one = (number: number) =>
        runStudy(policy, { bank, learner: drawLearner(world, seed, number), served });
      courses.get(name)?.push(indices(learners).map(one));
    }
  }
  return courses;
}

const headings = [
  '',
  'all 40 skills',
  '± SE',
  '10th to 90th percentile',
  'ratio to first row',
  'ratio by school',
  '36 skills',
  'reported mastered',
  'at limit',
];

function formatCourses(courses: Courses): string {
  const [first] = courses.values();
  const rows = Array.from(courses, ([name, schools]) => {
    const all = schools.flat().map((course) => course.all);
    const ratios = schools.map(
      (school, i) => computeMean(school, 'all') / computeMean(first?.[i] ?? [], 'all'),
    );
    const at = (p: number): string => `${quantile(all, p)}`;
    return [
      name,
      mean(all).toFixed(0),
      computeStandardError(all).toFixed(0),
      `${at(0.1)} to ${at(0.9)}`,
      (mean(all) / computeMean(first?.flat() ?? [], 'all')).toFixed(2),
      `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
      computeMean(schools.flat(), 'most').toFixed(0),
      computeMean(schools.flat(), 'called').toFixed(0),
      `${all.filter((answers) => answers === maxAnswers).length}`,
    ];
  });
  return formatTable([headings, ...rows]);
}

const computeMean = (courses: readonly Course[], figure: keyof Course): number =>
  mean(courses.map((course) => course[figure]));

const computeStandardError = (values: readonly number[]): number =>
  Math.sqrt(sumSquares(values) / (values.length - 1) / values.length);

const quantile = (values: readonly number[], p: number): number =>
  [...values].sort((a, b) => a - b)[Math.round(p * (values.length - 1))] as number;
