/** The scenarios, in the order in which they run. */
import type { Scenario } from '../scenario.js';
import { alternatives } from './alternatives.js';
import { analysts } from './analysts.js';
import { analystsLoad } from './analysts-load.js';
import { batches } from './batches.js';
import { cores } from './cores.js';
import { growth } from './growth.js';
import { kindScenarios } from './kinds.js';
import { latency } from './latency.js';
import { memory } from './memory.js';
import { overload } from './overload.js';
import { pipeline } from './pipeline.js';
import { predictions } from './predictions.js';
import { single } from './single.js';
import { sittings } from './sittings.js';
import { steady } from './steady.js';
import { sustained } from './sustained.js';
import { webhooks } from './webhooks.js';

export const scenarios: readonly Scenario[] = [
  single,
  pipeline,
  batches,
  latency,
  steady,
  ...kindScenarios,
  predictions,
  memory,
  alternatives,
  sittings,
  sustained,
  overload,
  analysts,
  analystsLoad,
  webhooks,
  cores,
  growth,
];
