/* SPDX-License-Identifier: MIT */
#include <fornix/fornix.h>

#include <stdio.h>

int main(void)
{
	puts("fornix " FORNIX_VERSION);
	return 0;
}
