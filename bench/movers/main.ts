/**
 * `npm run bench -- --movers [seeds] [--json]`: reports on simulated learners, to compare two versions of the
 * models. Deterministic.
 */
import { formatJsonLine, formatTable } from '../../src/lab/report/format.js';
import { StartError } from '../../src/lifecycle.js';
import { distinct, indices } from '../../src/lists.js';
import { mean, sumSquares } from '../results/spread.js';
import {
  growthCases,
  type History,
  moverCases,
  panelCases,
  pauseCases,
  portraitCases,
  runHistory,
} from './histories.js';
import { measureRanges, rangeAnswers } from './ranges.js';
import { fitDemo, freshTenant, type Tenant } from './tenants.js';

const panelSeeds = 20;
const demoLearners = 300;

export async function main(argv: readonly string[]): Promise<void> {
  const [seeds = '8', ...rest] = argv.filter((one) => one !== '--json');
  if (!/^[1-9]\d{0,3}$/.test(seeds) || rest.length > 0)
    throw new StartError(
      `Invalid arguments of --movers: ${argv.join(' ')}. Pass the number of seeds, 1 to 9999, and --json`,
    );
  const result = runPanels(Number(seeds), await fitDemo(demoLearners));
  process.stdout.write(`${argv.includes('--json') ? formatJsonLine(result, 4) : formatResult(result)}\n`);
}

const runPanels = (seeds: number, demo: Tenant) => ({
  seeds,
  fresh: moverCases.map((one) => runSeeds(freshTenant, one, seeds)),
  demo: moverCases.map((one) => runSeeds(demo, one, seeds)),
  panel: panelCases.map((one) => runSeeds(freshTenant, one, panelSeeds)),
  growth: growthCases.map((one) => runSeeds(freshTenant, one, seeds)),
  growthDemo: growthCases.map((one) => runSeeds(demo, one, seeds)),
  pauses: pauseCases.map((one) => runSeeds(freshTenant, one, panelSeeds)),
  pausesDemo: pauseCases.map((one) => runSeeds(demo, one, panelSeeds)),
  portraits: portraitCases.map(({ name, history }) => ({
    ...{ name, attempts: history.answers },
    ...runHistory(demo, history, 1),
  })),
  freshRanges: measureRanges(freshTenant, seeds),
  demoRanges: measureRanges(demo, seeds),
});

type Result = ReturnType<typeof runPanels>;
type FigureName = keyof ReturnType<typeof runHistory>['figures'];

function runSeeds(tenant: Tenant, { name, history }: { name: string; history: History }, seeds: number) {
  const runs = indices(seeds).map((seed) => runHistory(tenant, history, seed + 1));
  const spread = (figure: FigureName) => {
    const values = runs.map(({ figures }) => figures[figure]);
    return { mean: mean(values), sd: Math.sqrt(sumSquares(values) / values.length) };
  };
  const codes = runs.map(({ advice }) => distinct(advice.map(({ code }) => code)));
  const shareOf = (code: string) => codes.flat().filter((one) => one === code).length / seeds;
  const figures = Object.keys(columns).map((figure) => [figure, spread(figure as FigureName)]);
  return {
    name,
    figures: Object.fromEntries(figures) as Record<FigureName, ReturnType<typeof spread>>,
    advice: Object.fromEntries(
      distinct(codes.flat())
        .sort()
        .map((code) => [code, shareOf(code)]),
    ),
  };
}

type SeedRuns = ReturnType<typeof runSeeds>;

const columns: Readonly<Record<FigureName, readonly [heading: string, digits: number]>> = {
  observed: ['correct', 2],
  predicted: ['predicted', 2],
  mastered: ['mastered', 1],
  mastery: ['mastery', 2],
  total: ['total', 0],
  total30: ['30 days', 0],
  total90: ['90 days', 0],
  target: ['target', 0],
  onTrack: ['on track', 2],
  goalProbability: ['goal', 2],
  expectedShare: ['expected', 2],
  growth: ['growth', 2],
};

const growthColumns = ['total', 'total30', 'total90', 'mastered', 'growth', 'goalProbability'] as const;
const pauseColumns = ['total', 'total30', 'total90', 'mastery', 'expectedShare', 'goalProbability'] as const;

function formatResult({
  seeds,
  fresh,
  demo,
  panel,
  portraits,
  freshRanges,
  demoRanges,
  ...rest
}: Result): string {
  const all = Object.keys(columns) as FigureName[];
  return [
    `Mean ± standard deviation over ${seeds} seeds. correct, predicted: share of correct answers in the last 100. goal:`,
    'probability of the default goal. expected: forecast share of correct answers in the next 30 days.',
    `\nFresh tenant, 900 answers in 60 days:\n${formatRuns(fresh, all)}\n${formatAdvice(fresh)}`,
    `\nTenant with the fit and the sections of the demo:\n${formatRuns(demo, all)}\n${formatAdvice(demo)}`,
    `\nFixed histories, fresh tenant, ${panelSeeds} orders of the answers:\n${formatRuns(panel, ['total', 'total30', 'mastered', 'mastery'])}`,
    `\nGrowth, fresh tenant:\n${formatRuns(rest.growth, growthColumns)}`,
    `\nGrowth, demo tenant:\n${formatRuns(rest.growthDemo, growthColumns)}`,
    `\nPauses, fresh tenant:\n${formatRuns(rest.pauses, pauseColumns)}`,
    `\nPauses, demo tenant:\n${formatRuns(rest.pausesDemo, pauseColumns)}`,
    `\nSingle learners in the demo tenant:\n${formatPortraits(portraits)}`,
    ...portraits.map(({ name, advice }) =>
      [`\n${name}:`, ...advice.map(({ text }) => `  ${text}`)].join('\n'),
    ),
    `\nWidth of the 80 % range of the total by number of answers, 70 % right, fresh tenant:\n${formatRanges(freshRanges)}`,
    `\nThe same in the demo tenant:\n${formatRanges(demoRanges)}`,
  ].join('\n');
}

function formatRuns(runs: readonly SeedRuns[], shown: readonly FigureName[]): string {
  const cell = ({ mean, sd }: SeedRuns['figures'][FigureName], digits: number) =>
    `${mean.toFixed(digits)} ± ${sd.toFixed(digits)}`;
  const rows = runs.map(({ name, figures }) => [
    name,
    ...shown.map((one) => cell(figures[one], columns[one][1])),
  ]);
  return formatTable([['', ...shown.map((one) => columns[one][0])], ...rows]);
}

const formatAdvice = (runs: readonly SeedRuns[]): string =>
  runs
    .map(({ name, advice }) => {
      const shares = Object.entries(advice).map(([code, share]) => `${code} ${share.toFixed(2)}`);
      return `  Advice, ${name}: ${shares.join(', ') || 'none'}`;
    })
    .join('\n');

function formatRanges(ranges: ReturnType<typeof measureRanges>): string {
  const rows = ranges.map(({ skills, days, widths }) => [
    `${skills} skills, in ${days} days`,
    ...widths.map((width) => width.toFixed(0)),
  ]);
  return formatTable([['', ...rangeAnswers.map(String)], ...rows]);
}

function formatPortraits(portraits: Result['portraits']): string {
  const shown = ['observed', 'mastery', 'mastered', 'total', 'total30'] as const;
  const rows = portraits.map(({ name, attempts, figures }) => [
    ...[name, `${attempts}`],
    ...shown.map((one) => figures[one].toFixed(columns[one][1])),
  ]);
  return formatTable([['', 'attempts', ...shown.map((one) => columns[one][0])], ...rows]);
}
