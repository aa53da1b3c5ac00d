/** In the order in which they run. */
import type { Scenario } from '../measurement/scenario.js';
import { analysts } from './analysts.js';
import { analystsLoad } from './analysts-load.js';
import { cores } from './cores.js';
import { growth } from './growth.js';
import { latency } from './latency.js';
import { memory } from './memory.js';
import { overload } from './overload.js';
import {
  batches,
  pipeline,
  predictions,
  severalSkills,
  single,
  sittings,
  steady,
  sustained,
  trafficScenarios,
} from './shared-service.js';
import { webhooks } from './webhooks.js';

export const scenarios: readonly Scenario[] = [
  single,
  pipeline,
  batches,
  severalSkills,
  latency,
  steady,
  ...trafficScenarios,
  predictions,
  memory,
  sittings,
  sustained,
  overload,
  analysts,
  analystsLoad,
  webhooks,
  cores,
  growth,
];
