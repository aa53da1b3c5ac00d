/** The service alone under kinds of traffic that differ in who answers and what is asked for, closed loop. */
import { type Bench, inTurns } from '../bench.js';
import { newTally } from '../ledger.js';
import { learnerId, type Traffic, usualTraffic } from '../load/traffic.js';
import { type Findings, ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import { seedAnswers } from '../seed.js';

interface Kind {
  readonly name: string;
  readonly about: string;
  readonly long: boolean;
  readonly traffic: Partial<Traffic>;
  /** Whether the learners must have answered before, because the traffic asks for them. */
  readonly known: boolean;
}

const kinds: readonly Kind[] = [
  {
    name: 'mixed',
    about:
      '90 % answers, 8 % mastery and predictions, 2 % velocity, of learners by Zipf’s law, without event ids',
    long: false,
    traffic: { kind: 'mixed', order: 'zipf', fields: 'no ids' },
    known: true,
  },
  {
    name: 'hot',
    about: 'one learner alone, without event ids',
    long: false,
    traffic: { order: 'hot', fields: 'no ids' },
    known: false,
  },
  {
    name: 'cold',
    about: 'every answer is that of a new learner',
    long: false,
    traffic: { newLearners: true },
    known: false,
  },
  {
    name: 'full-events',
    about: 'single answers with item, confidence and time as well',
    long: true,
    traffic: { fields: 'all' },
    known: false,
  },
];

export const kindScenarios: readonly Scenario[] = kinds.map((kind) => ({
  name: kind.name,
  about: kind.about,
  long: kind.long,
  run: (bench) => runKind(bench, kind),
}));

async function runKind(bench: Bench, { name, about, traffic: special, known }: Kind): Promise<Findings> {
  const service = await bench.service();
  const tally = newTally();
  const traffic: Traffic = { ...usualTraffic, ...special };
  if (known) {
    bench.progress(`${name}: learners are made`);
    await seedAnswers(service, name, tally, traffic.learners, (i) => ({
      user_id: learnerId(i),
      skill_id: `skill-${i % traffic.skills}`,
      is_correct: i % 3 !== 0,
    }));
  }
  const contestants = [serviceContestant(service, name, traffic, tally)];
  const turns = { scenario: name, pace: bench.settings.glance };
  const samples = await inTurns(bench, contestants, turns);
  const ledger = await ledgerOf(service, name, traffic, tally);
  const measurements = [measurementOf(service.name, samples.get(service.name) ?? [], { ledger })];
  const unit = traffic.kind === 'answers' ? ('answer' as const) : ('request' as const);
  return { results: [{ name, about, axis: null, unit, measurements }], figures: [] };
}
