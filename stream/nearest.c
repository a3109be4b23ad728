/* SPDX-License-Identifier: MIT */
/*
 * nearest.c - suggestions for misspelt names. Names are short, so three rows of the dynamic programme stay on the
 * stack and hostile lengths are turned away instead of allocated for.
 */
#include "nearest.h"

#include <fornix/property.h>

#include <ctype.h>
#include <string.h>

#define LONGEST 64

static int lower(char c)
{
	return tolower((unsigned char)c);
}

static int min(int a, int b)
{
	return a < b ? a : b;
}

int fxi_edit_distance(const char *a, const char *b)
{
	int rows[3][LONGEST + 1];
	int n = (int)strnlen(a, LONGEST + 1), m = (int)strnlen(b, LONGEST + 1);

	if (n > LONGEST || m > LONGEST)
		return -1;
	for (int j = 0; j <= m; j++)
		rows[0][j] = j;
	for (int i = 1; i <= n; i++) {
		int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

		row[0] = i;
		for (int j = 1; j <= m; j++) {
			int differs = lower(a[i - 1]) != lower(b[j - 1]);

			row[j] = min(min(above[j] + 1, row[j - 1] + 1), above[j - 1] + differs);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
				row[j] = min(row[j], two_above[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

static int begins_alike(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;

	if (shorter < 2)
		return 0;
	for (size_t i = 0; i < shorter; i++)
		if (lower(a[i]) != lower(b[i]))
			return 0;
	return 1;
}

const char *fxi_nearest_name(const char *wanted, const char *const *names, int64_t n)
{
	const char *best = NULL;
	int best_distance = LONGEST + 1;

	for (int64_t i = 0; i < n; i++) {
		int distance = names[i] ? fxi_edit_distance(wanted, names[i]) : -1;
		size_t longer;

		if (distance < 0)
			continue;
		longer = strlen(wanted) > strlen(names[i]) ? strlen(wanted) : strlen(names[i]);
		if (distance < best_distance && distance <= ((int)longer + 2) / 3) {
			best = names[i];
			best_distance = distance;
		}
	}
	for (int64_t i = 0; !best && i < n; i++)
		if (names[i] && begins_alike(wanted, names[i]))
			best = names[i];
	return best;
}

const char *fx_nearest_word(const char *wanted, const char *const *words)
{
	int64_t n = 0;

	while (words[n])
		n++;
	return fxi_nearest_name(wanted, words, n);
}
