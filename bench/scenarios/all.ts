/** The scenarios, in the order in which they run. */
import type { Scenario } from '../scenario.js';
import { alternatives } from './alternatives.js';
import { batches } from './batches.js';
import { growth } from './growth.js';
import { kindScenarios } from './kinds.js';
import { latency } from './latency.js';
import { memory } from './memory.js';
import { overload } from './overload.js';
import { pipeline } from './pipeline.js';
import { predictions } from './predictions.js';
import { processes } from './processes.js';
import { single } from './single.js';
import { sittings } from './sittings.js';
import { sustained } from './sustained.js';

export const scenarios: readonly Scenario[] = [
  single,
  pipeline,
  batches,
  latency,
  ...kindScenarios,
  predictions,
  memory,
  alternatives,
  sittings,
  sustained,
  overload,
  processes,
  growth,
];
