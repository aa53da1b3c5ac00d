import { buildHref } from '../base/route.js';
import { Panel } from '../parts/stat.jsx';

/** Must match src/lab/demo/school.ts. */
const featuredLearners: readonly (readonly [id: string, shows: string])[] = [
  ['demo-on-track', 'learns fast, comes every week; the goal is within reach'],
  ['demo-at-risk', 'practises, but some skills do not move; the goal of next month is out of reach'],
  ['demo-idle', 'stopped 45 days before the end: mastery fades, the forecast sinks'],
  ['demo-four-answers', 'began this week: four answers, wide intervals'],
  ['demo-guesser', 'answers nearly all in a second or two, right a quarter of the time'],
  ['demo-goal-reached', 'is where the goal was'],
  ['demo-goal-given-up', 'set a goal, and took it back three months later'],
  ['demo-ليلى', 'a name that is written from right to left'],
  ['demo-<script>alert(1)</script>', 'a name that must not become markup'],
];

const generationRules: readonly (readonly [topic: string, text: string])[] = [
  [
    'Skills',
    '20 of mathematics and 20 of reading and writing, each with its own chance of being known at the start, of a right answer without knowledge (some 27 %) and with it (some 87 %), and its own usual time. Three are odd: nobody learns Quantitative evidence, Data and scatterplots is two skills in one, and learners of Rational expressions get worse before they get better.',
  ],
  [
    'Items',
    '15 a skill, of differing difficulty, seven of ten rated by their authors. Ten mislead: a wrong option attracts those who know.',
  ],
  [
    'Learners',
    'Ability varies. Of a hundred, 12 are keen, 18 come now and then, 12 cram before tests, 7 guess three answers of ten, 8 are stuck on some skills. They begin in six cohorts, and a quarter leaves early.',
  ],
  [
    'Learning and forgetting',
    'A learner knows a skill or does not. An answer that was not guessed teaches it with a chance of 15 % times the learner’s speed; from the third idle day on it is lost with a chance of 0.4 to 2 % a day.',
  ],
  [
    'Answers',
    'Whether one is right depends on knowledge, ability and the item’s difficulty. Two of three learners say how sure they feel, and a fifth of these feels too sure.',
  ],
  [
    'The year',
    'Little is done around New Year, in the summer and in a week of April; each ninth week ends with a test.',
  ],
  [
    'Devices',
    'One in twenty sends sessions days late; one in twenty is an old app that sends some answers twice.',
  ],
  [
    'Forecasts and fits',
    'Forecasts are made each Sunday evening from the answers until then, by the code that serves, and compared with what came. The models are fitted after half and after three quarters of the weeks.',
  ],
];

const demoLimits: readonly string[] = [
  'It is no evidence: effects were set by hand so that a school looks plausible. How well the engine predicts real learners was measured on public logs.',
  'It is not the engine’s own model. Intervals of learners with many answers hold less often here than they say, and the odd skills stay odd: the pages are to show it.',
  'It is too clean: nobody copies, has a teacher or a bad day, and skills do not depend on one another.',
  'It is not live: all answers arrived when the demo was imported.',
];

export function AboutDemo() {
  return (
    <>
      <h1>About the demo</h1>
      <p>
        The learners of this tenant are made up by <code>npm run demo</code>: a school of eight months whose
        answers went through the engine week by week. <code>npm run demo -- --reset</code> removes it.
      </p>
      <Panel title="Learners to look at">
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
      <Panel title="How it is made up">
        {generationRules.map(([topic, text]) => (
          <p key={topic}>
            <strong>{topic}.</strong> {text}
          </p>
        ))}
      </Panel>
      <Panel title="What it is not">
        <ul>
          {demoLimits.map((limit) => (
            <li key={limit}>{limit}</li>
          ))}
        </ul>
      </Panel>
    </>
  );
}
