/**
 * `node dist/bench/fit.js [answers] [skills]`: ns per observation and EM iteration of a BKT fit, with
 * preparation.
 */
import { availableParallelism } from 'node:os';
import { createFitPool } from '../src/compute/job-pools.js';
import { type AnswerLog, createMembers, selectAllLearners } from '../src/domain/base/answer-log.js';
import { priorStrengths } from '../src/domain/base/fit-constants.js';
import { growTrees } from '../src/domain/fit/bkt/answer-trees.js';
import { type BktFit, type BktFitOptions, fitTrees, type SkillFit } from '../src/domain/fit/bkt/fit-trees.js';
import { runInRanges } from '../src/domain/fit/fit-stages.js';

const options: BktFitOptions = { strengths: priorStrengths, difficultyScale: 0 };
const attempts = 20;

function generateLog(answers: number, skills: number): AnswerLog {
  const learners = Math.ceil(answers / (5 * attempts));
  const places = learners * 5 * attempts;
  const skill = Uint32Array.from({ length: places }, (_, i) => (Math.floor(i / attempts) * 7919) % skills);
  const pace = Float64Array.from({ length: learners * 5 }, () => 0.3 * Math.random() ** 2);
  const correct = Uint8Array.from(skill, (_, i) => {
    const learned = (i % attempts) * (pace[Math.floor(i / attempts)] as number);
    return Math.random() < 0.9 - 0.6 * Math.exp(-learned) ? 1 : 0;
  });
  return {
    starts: Uint32Array.from({ length: learners + 1 }, (_, learner) => learner * 5 * attempts),
    skill,
    item: new Uint32Array(places),
    correct,
    at: new Float64Array(places),
    seconds: new Float32Array(places).fill(Number.NaN),
    difficulty: Float32Array.from(skill, () => 4 * Math.random() - 2),
    skills,
    items: 0,
    members: createMembers(skills),
  };
}

async function fitInThreads(log: AnswerLog, threads: number): Promise<BktFit> {
  const pool = createFitPool({ threads, servesRequests: false, redisUrl: '', clickhouseUrl: '' });
  const trees = growTrees(log, selectAllLearners(log));
  const fit = await fitTrees(trees, options, async (round) => {
    const estimates = await runInRanges(pool, trees.starts, (from, to) =>
      pool.run('fitSkillRange', trees, from, to, round),
    );
    return estimates.flat();
  });
  await pool.close();
  return fit;
}

async function measureTime(name: string, fit: () => BktFit | Promise<BktFit>): Promise<void> {
  const start = performance.now();
  const { skills } = await fit();
  const ms = performance.now() - start;
  const sum = (of: (skill: SkillFit) => number): number =>
    skills.reduce((total, skill) => total + of(skill), 0);
  const observations = sum((skill) => skill.observations);
  const iterations = sum((skill) => skill.iterations);
  const each = (ms * 1e6) / sum((skill) => skill.iterations * skill.observations);
  process.stdout.write(
    `${name.padEnd(28)}${ms.toFixed(0).padStart(7)} ms${each.toFixed(1).padStart(7)} ns per observation and iteration` +
      ` (${observations} observations, ${iterations} skill iterations)\n`,
  );
}

const fitBkt = (log: AnswerLog, fitted: BktFitOptions): Promise<BktFit> =>
  fitTrees(growTrees(log, selectAllLearners(log), { withDifficulty: fitted.difficultyScale > 0 }), fitted);

async function main(answers = 1_000_000, skills = 200): Promise<void> {
  const log = generateLog(answers, skills);
  const threads = availableParallelism();
  await fitBkt(generateLog(50_000, skills), options); // compiles
  await measureTime('one thread', () => fitBkt(log, options));
  await measureTime('one thread, difficulties', () => fitBkt(log, { ...options, difficultyScale: 0.5 }));
  await measureTime(`${threads} threads`, () => fitInThreads(log, threads));
}

await main(...process.argv.slice(2).map(Number));
