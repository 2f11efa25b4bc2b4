"""Compiled rectification and pooling of filter responses: one read of each response, where NumPy takes about ten."""

import numpy as np

from manyclass.data.compiled import entry


@entry(fastmath=True)
def pool_rectified(response, mean, spread, norm, filter_sum, offset, threshold, tops, bottoms, lefts, rights, out):
    """Add up max(±r − threshold, 0) over each cell of the grid, and divide by the number of its pixels.

    Filters are applied to patches as they are: r = ((response − mean·filter_sum) / spread + offset) / norm, with a
    `response` of shape (n_images, height, width, n_filters) and mean, spread and norm of each patch. Rows and columns
    of cells begin and end at tops, bottoms, lefts and rights; `out`, of shape (n_images, n_row_cells, n_column_cells,
    2, n_filters), is overwritten.
    """
    n_filters = response.shape[3]
    for n in range(response.shape[0]):
        for a in range(len(tops)):
            for b in range(len(lefts)):
                above, below = out[n, a, b, 0], out[n, a, b, 1]
                above[:] = 0.0
                below[:] = 0.0
                for i in range(tops[a], bottoms[a]):
                    for j in range(lefts[b], rights[b]):
                        shift, level, row = mean[n, i, j], 1.0 / norm[n, i, j], response[n, i, j]
                        scale = level / spread[n, i, j]
                        for f in range(n_filters):
                            r = (row[f] - shift * filter_sum[f]) * scale + offset[f] * level
                            above[f] += max(r - threshold, np.float32(0.0))
                            below[f] += max(-r - threshold, np.float32(0.0))
                share = 1.0 / ((bottoms[a] - tops[a]) * (rights[b] - lefts[b]))
                for f in range(n_filters):
                    above[f] *= share
                    below[f] *= share
