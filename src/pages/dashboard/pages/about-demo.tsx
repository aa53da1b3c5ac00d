import { buildHref } from '../base/route.js';
import { Panel } from '../parts/stat.jsx';

/** Must match src/lab/demo/school.ts. */
const featuredLearners: readonly (readonly [id: string, shows: string])[] = [
  ['demo-on-track', 'learns fast and practises every week; the forecast reaches the goal'],
  [
    'demo-at-risk',
    'practises, but is on a plateau in some skills; the forecast misses the goal of next month',
  ],
  ['demo-idle', 'stopped 45 days before the end; mastery and forecast decline'],
  ['demo-four-answers', 'started this week; four answers, wide intervals'],
  ['demo-guesser', 'answers almost all questions in 1 or 2 seconds; a quarter are correct'],
  ['demo-goal-reached', 'has reached the goal'],
  ['demo-goal-given-up', 'set a goal and removed it three months later'],
  ['demo-ليلى', 'has an id and a name in a right-to-left script'],
  ['demo-<script>alert(1)</script>', 'has an id and a name with HTML markup, which pages show as text'],
];

const generationRules: readonly (readonly [topic: string, text: string])[] = [
  [
    'Skills',
    '20 in math and 20 in reading and writing. The initial knowledge, the typical time, and the probability of a correct answer without knowledge (about 27 %) and with knowledge (about 87 %) differ by skill. Three skills are unusual. Quantitative evidence cannot be learned. Data and scatterplots combines two skills. Learners of Rational expressions get worse before they improve.',
  ],
  [
    'Items',
    '15 per skill, with different difficulties. Seven in ten have a difficulty rating by their authors. Ten items are misleading: a wrong option attracts learners who know the skill. A tenth of the items also needs an earlier skill of the same section: the weaker of the two skills decides.',
  ],
  [
    'Learners',
    'Ability varies. Of 100 learners, 12 practise a lot, 18 practise occasionally, 12 cram before tests, 7 guess three in ten answers, and 8 make no progress in some skills. Learners start in six cohorts. A quarter stop early.',
  ],
  [
    'Learning and forgetting',
    'A learner either knows a skill or does not. Each answer without guessing teaches the skill with a probability of 15 % times the speed of the learner, twice as much with hints. From the third idle day, the learner forgets the skill with a probability of 0.4 to 2 % per day.',
  ],
  [
    'Answers',
    'The result depends on knowledge, ability and item difficulty. Two in three learners report their confidence. A fifth of them are overconfident.',
  ],
  [
    'Calendar',
    'Learners practise little around New Year, in summer, in one week of April and in two of autumn. Every ninth week ends with a test.',
  ],
  [
    'Classes',
    'The learners are in four grades and twelve classes, and six teachers have two classes each. Class 10-A learned Absolute value and Exponents and radicals only three weeks before the end, in extra lessons. Class 11-A practises less and guesses more in the last four weeks. Grade 9 forgets Polynomials and Text structure in holidays. Classes 9-C and 12-C practise least. Learners with the attribute hints: on learn twice as fast. All names are made up.',
  ],
  [
    'Devices',
    'One in twenty devices sends sessions days late. One in twenty runs an old app that sends some answers twice.',
  ],
  [
    'Forecasts and fits',
    'Every Sunday evening, the service code computes forecasts from the answers so far. The dashboard compares them with the later results. Models are fitted after half and after three quarters of the weeks.',
  ],
];

const demoLimits: readonly string[] = [
  'The demo is not evidence of accuracy. Its effects were chosen to look plausible. The accuracy for real learners was measured on public answer logs.',
  'The demo does not follow the model of the engine. Forecast intervals are not exactly calibrated, and the unusual skills do not fit. The pages show these differences on purpose.',
  'The data is cleaner than real data. Learners do not copy and have no bad days. Skills are independent of each other.',
  'The data is not live. All answers arrived with the import of the demo.',
];

export function AboutDemo() {
  return (
    <>
      <h1>About the demo</h1>
      <p>
        <code>npm run demo</code> generates the learners of this tenant: a school with eight months of
        answers, which the engine processed week by week. <code>npm run demo -- --reset</code> removes the
        demo.
      </p>
      <Panel title="Example learners">
        <ul>
          {featuredLearners.map(([id, shows]) => (
            <li key={id}>
              <a href={buildHref('learner', [id])}>
                <bdi>{id}</bdi>
              </a>{' '}
              {shows}
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title="How the data is generated">
        {generationRules.map(([topic, text]) => (
          <p key={topic}>
            <strong>{topic}.</strong> {text}
          </p>
        ))}
      </Panel>
      <Panel title="Limits of the demo">
        <ul>
          {demoLimits.map((limit) => (
            <li key={limit}>{limit}</li>
          ))}
        </ul>
      </Panel>
    </>
  );
}
