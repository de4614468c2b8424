/* The loops for every processor. */

#define TARGET
#define LANES 4
#define TABLE plain_loops

#include "loops_body.h"
