/** In the order in which they run. */
import type { Scenario } from '../measurement/scenario.js';
import { analysts } from './analysts.js';
import { classes } from './classes.js';
import { memory } from './memory.js';
import { peers } from './peers.js';
import { batches, predictions, severalSkills, single } from './shared-service.js';

export const scenarios: readonly Scenario[] = [
  single,
  batches,
  peers,
  severalSkills,
  predictions,
  classes,
  memory,
  analysts,
];
