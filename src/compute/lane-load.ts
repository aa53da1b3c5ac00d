/**
 * How many lanes the load asks for. More lanes make smaller batches, and a batch costs what it costs whatever its size:
 * so there is one until its thread has no time left, and another one only then.
 */

/** Of its time, what a thread that is saturated is busy at least. */
const saturated = 0.9;
/** Lanes are given up that the others could do without being busier than this. */
const easy = 0.6;
/** Looks in a row that have to say so: the next rush is not far. */
const quietLooks = 10;

/**
 * @param most lanes
 * @returns asked at even times with the parts of their time that the threads of the lanes were busy; tells how many lanes
 * there are to be
 */
export function createLaneLoad(most: number): (busy: readonly number[]) => number {
  let quiet = 0;
  return (busy) => {
    const lanes = busy.length;
    const all = busy.reduce((sum, one) => sum + one, 0);
    quiet = lanes > 1 && all < easy * (lanes - 1) ? quiet + 1 : 0;
    if (all >= saturated * lanes) return Math.min(most, lanes + 1);
    if (quiet < quietLooks) return lanes;
    quiet = 0;
    return lanes - 1;
  };
}
